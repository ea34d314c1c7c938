//! Writing and syncing on a thread of its own, so that the next lines are read and looked up
//! meanwhile. One batch is under way at most: the one before is durable when the next begins.

use std::{
    mem, panic,
    sync::mpsc::{self, Receiver, SyncSender},
    thread::{self, JoinHandle},
};

use crate::error::Error;

/// What makes a batch of whole lines durable.
pub(crate) trait Commit: Send + 'static {
    /// After an error it is not called again.
    fn commit(&mut self, lines: &[u8]) -> Result<(), Error>;
}

pub(crate) struct Writer {
    batches: SyncSender<Vec<u8>>,
    done: Receiver<Result<Vec<u8>, Error>>,
    under_way: bool,
    spare: Vec<u8>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// # Errors
    /// Where there can be no thread.
    pub(crate) fn start(mut target: impl Commit) -> Result<Self, Error> {
        let (batches, taken) = mpsc::sync_channel::<Vec<u8>>(1);
        let (finished, done) = mpsc::sync_channel(1);
        let work = move || {
            for mut batch in taken {
                let result = target.commit(&batch).map(|()| {
                    batch.clear();
                    batch
                });
                let failed = result.is_err();
                if finished.send(result).is_err() || failed {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("writer".to_owned()).spawn(work);
        Ok(Self {
            batches,
            done,
            under_way: false,
            spare: Vec::new(),
            thread: Some(thread.map_err(Error::Thread)?),
        })
    }

    /// Takes the lines over and leaves room for others, once what was taken before is durable.
    ///
    /// # Errors
    /// What became of the lines before.
    pub(crate) fn hand_over(&mut self, batch: &mut Vec<u8>) -> Result<(), Error> {
        self.settle()?;
        let batch = mem::replace(batch, mem::take(&mut self.spare));
        match self.batches.send(batch) {
            Ok(()) => self.under_way = true,
            Err(_) => self.rethrow(),
        }
        Ok(())
    }

    /// Waits until everything that was handed over is durable.
    ///
    /// # Errors
    /// What became of it otherwise. Nothing may be handed over then.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        if mem::take(&mut self.under_way) {
            match self.done.recv() {
                Ok(result) => self.spare = result?,
                Err(_) => self.rethrow(),
            }
        }
        Ok(())
    }

    /// The thread is gone without a word, which only a panic can do.
    fn rethrow(&mut self) {
        if let Some(Err(panicked)) = self.thread.take().map(JoinHandle::join) {
            panic::resume_unwind(panicked);
        }
    }
}

/// A batch under way is seen through, whatever ends the program in order.
impl Drop for Writer {
    fn drop(&mut self) {
        if mem::take(&mut self.under_way) {
            let _ = self.done.recv();
        }
    }
}
