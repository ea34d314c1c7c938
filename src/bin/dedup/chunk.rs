//! Lines with their fingerprints, made by a thread of their own while others look them up.

use std::{
    io::{self, Read},
    panic,
    sync::mpsc::{self, Receiver, SyncSender},
    thread::{self, JoinHandle},
};

use crate::{
    error::Error,
    format::Format,
    index::{Hasher, NO_KEY},
    lines::{BUFFER_BYTES, Lines},
    recipe::NoKey,
    table::Fingerprint,
};

/// How many lines are handed on together at most: one read of many short ones would else take
/// far more memory for its fingerprints than for its bytes.
const CHUNK_LINES_MAX: usize = 32 << 10;

/// How many chunks wait; with the two that are at work, what is held at once is bounded.
const CHUNKS_WAITING: usize = 2;

/// Whole lines, each with its terminator.
#[derive(Default)]
pub(crate) struct Chunk {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    fingerprints: Vec<Fingerprint>,
    without_key: u64,
    quiet: bool,
    end_completed: bool,
}

impl Chunk {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where each line ends, behind its terminator.
    pub(crate) fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// One for each line, [`NO_KEY`] where it has none.
    pub(crate) fn fingerprints(&self) -> &[Fingerprint] {
        &self.fingerprints
    }

    /// How many lines have no key.
    pub(crate) fn without_key(&self) -> u64 {
        self.without_key
    }

    /// Whether a read for more would have to wait.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether this is one line that the input ended in the middle of, completed.
    pub(crate) fn end_completed(&self) -> bool {
        self.end_completed
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(2 * BUFFER_BYTES);
        self.ends.clear();
        self.fingerprints.clear();
        self.without_key = 0;
    }
}

/// Something to read that can be asked whether a read would come back at once.
pub(crate) trait Source: Read + Send + 'static {
    fn ready(&self) -> io::Result<bool>;
}

/// What is done with each line on the way.
pub(crate) struct Preparation {
    pub(crate) format: Format,
    /// Without one there are no fingerprints.
    pub(crate) hasher: Option<Hasher>,
    /// Whether a line without a key ends the input.
    pub(crate) key_required: bool,
}

/// The receiving end.
pub(crate) struct Chunks {
    filled: Receiver<Result<Chunk, Error>>,
    spare: SyncSender<Chunk>,
    reader: Option<JoinHandle<()>>,
}

impl Chunks {
    /// Starts to read. `failed` says what a failure of a read means.
    ///
    /// # Errors
    /// Where there can be no thread.
    pub(crate) fn read(
        source: impl Source,
        preparation: Preparation,
        failed: impl Fn(io::Error) -> Error + Send + 'static,
    ) -> Result<Self, Error> {
        let (filled_by, filled) = mpsc::sync_channel(CHUNKS_WAITING);
        let (spare, spares) = mpsc::sync_channel(CHUNKS_WAITING + 2);
        let reader = Reader {
            lines: Lines::new(source, preparation.format.terminator),
            preparation,
            filled: filled_by,
            spares,
            number: 0,
        };
        let reader = thread::Builder::new()
            .name("reader".to_owned())
            .spawn(move || reader.run(failed))
            .map_err(Error::Thread)?;
        Ok(Self {
            filled,
            spare,
            reader: Some(reader),
        })
    }

    /// The next lines; `None` at the end. After an error nothing more comes.
    pub(crate) fn next(&mut self) -> Result<Option<Chunk>, Error> {
        if let Ok(next) = self.filled.recv() {
            return next.map(Some);
        }
        // It ends by itself alone: a panic of its must not pass for the end of the input.
        if let Some(Err(panicked)) = self.reader.take().map(JoinHandle::join) {
            panic::resume_unwind(panicked);
        }
        Ok(None)
    }

    /// Gives the memory of a chunk back.
    pub(crate) fn recycle(&self, mut chunk: Chunk) {
        chunk.clear();
        // A reader that has ended needs none.
        let _ = self.spare.try_send(chunk);
    }
}

struct Reader<S> {
    lines: Lines<S>,
    preparation: Preparation,
    filled: SyncSender<Result<Chunk, Error>>,
    spares: Receiver<Chunk>,
    /// How many lines were read.
    number: u64,
}

impl<S: Source> Reader<S> {
    /// Until the end of the input, or until nobody wants more.
    fn run(mut self, failed: impl Fn(io::Error) -> Error) {
        loop {
            let more = self.lines.fill();
            let more = more.and_then(|more| Ok((more, more && self.lines.source().ready()?)));
            // What was read before a failure is handed on too.
            let quiet = !matches!(more, Ok((_, true)));
            let result = self.hand_on(quiet);
            let last = match (result, more) {
                (Err(error), _) => Some(error),
                (Ok(true), Ok((true, _))) => continue,
                (Ok(_), Ok(_)) => None,
                (Ok(_), Err(error)) => Some(failed(error)),
            };
            if let Some(error) = last {
                let _ = self.filled.send(Err(error));
            }
            return;
        }
    }

    /// Hands the whole lines on. `false` where nobody wants them.
    fn hand_on(&mut self, quiet: bool) -> Result<bool, Error> {
        let end_completed = self.lines.end_completed();
        let block = self.lines.whole();
        let mut ends = memchr::memchr_iter(self.preparation.format.terminator, block);
        let mut start = 0;
        loop {
            let mut chunk = self.spares.try_recv().unwrap_or_default();
            chunk.end_completed = end_completed;
            let (first, mut refused) = (start, None);
            for end in ends.by_ref().take(CHUNK_LINES_MAX) {
                match self.preparation.prepare(&block[start..end], &mut chunk) {
                    Err(why) if self.preparation.key_required => {
                        refused = Some(why);
                        break;
                    }
                    Err(_) => {
                        chunk.without_key += 1;
                        chunk.fingerprints.push(NO_KEY);
                    }
                    Ok(()) => {}
                }
                self.number += 1;
                start = end + 1;
                chunk.ends.push(start - first);
            }
            chunk.bytes.extend_from_slice(&block[first..start]);
            let last = start == block.len();
            chunk.quiet = refused.is_some() || (last && quiet);
            let wanted = self.filled.send(Ok(chunk)).is_ok();
            if let Some(why) = refused {
                let line = self.number + 1;
                return Err(Error::NoKey { line, why });
            }
            if last || !wanted {
                return Ok(wanted);
            }
        }
    }
}

impl Preparation {
    fn prepare(&self, content: &[u8], chunk: &mut Chunk) -> Result<(), NoKey> {
        let key = self.format.recipe.key(content)?;
        if let Some(hasher) = &self.hasher {
            chunk.fingerprints.push(hasher.fingerprint(&key));
        }
        Ok(())
    }
}
