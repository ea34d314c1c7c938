//! The thread that commits for all partitions at once: one sync, however many have work.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::wake::Call;
use super::{Committed, Engine, Wake};
use crate::store::StoreError;

/// How long a unit without effects may wait: nothing is repeated if it is lost.
const IDLE: Duration = Duration::from_millis(200);

/// A running committer.
pub(crate) struct Committer {
    wake: Arc<Wake>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// Starts the thread. Effects are committed at the latest `linger` after they happened, or when
    /// a ledger asks. `report` hears of every commit, and of the failure that ends the thread.
    pub(crate) fn start(
        engine: Engine,
        linger: Duration,
        report: impl Fn(Result<Vec<Committed>, StoreError>) + Send + 'static,
    ) -> io::Result<Self> {
        let wake = Arc::new(Wake::default());
        let called = Arc::clone(&wake);
        let thread = std::thread::Builder::new()
            .name("ic-commit".to_owned())
            .spawn(move || {
                let committing = || run(&engine, &called, linger, &report);
                if catch_unwind(AssertUnwindSafe(committing)).is_err() {
                    // Without a word the workers would wait for a commit that never comes.
                    report(Err(StoreError::Misused("the store panicked in a commit")));
                }
            })?;
        Ok(Self {
            wake,
            thread: Some(thread),
        })
    }

    pub(crate) fn wake(&self) -> Arc<Wake> {
        Arc::clone(&self.wake)
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.wake.stop();
        if let Some(thread) = self.thread.take() {
            // A panic there was printed there; nothing is left to do for it here.
            let _ = thread.join();
        }
    }
}

fn run(
    engine: &Engine,
    wake: &Wake,
    linger: Duration,
    report: &impl Fn(Result<Vec<Committed>, StoreError>),
) {
    loop {
        let due = engine
            .open_units()
            .iter()
            .filter(|open| !open.is_alone())
            .filter_map(|open| open.due(linger, IDLE))
            .min();
        let urgent = match wake.wait(due) {
            Call::Stop => return,
            // A deadline has begun: compute the earliest again.
            Call::Stirred => continue,
            Call::Deadline => false,
            Call::Urgent => true,
        };
        let now = Instant::now();
        let failed = engine.commit_where(
            |open| {
                !open.is_alone()
                    && (urgent
                        || open.has_effects()
                        || open.due(linger, IDLE).is_some_and(|due| due <= now))
            },
            |committed| {
                let failed = committed.is_err();
                report(committed);
                failed
            },
        );
        if failed {
            return;
        }
    }
}
