//! How long a transaction is tried, and how it ends early.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// An end that may be set while others wait for theirs.
#[derive(Default)]
pub(super) struct Closing {
    by: Mutex<Option<Instant>>,
    set: Condvar,
}

impl Closing {
    fn by(&self) -> MutexGuard<'_, Option<Instant>> {
        self.by.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whatever is under way ends by then.
    pub(super) fn close(&self, by: Instant) {
        *self.by() = Some(by);
        self.set.notify_all();
    }

    pub(super) fn reopen(&self) {
        *self.by() = None;
    }
}

/// Patience with one commit.
pub(super) struct Patience<'a> {
    closing: &'a Closing,
    end: Instant,
    pause: Duration,
}

impl<'a> Patience<'a> {
    pub(super) fn new(closing: &'a Closing, limit: Duration) -> Self {
        Self {
            closing,
            end: Instant::now() + limit,
            pause: FIRST_PAUSE,
        }
    }

    fn end(&self, by: Option<Instant>) -> Instant {
        by.map_or(self.end, |by| by.min(self.end))
    }

    /// What is left of it, zero where it is over.
    pub(super) fn left(&self) -> Duration {
        let end = self.end(*self.closing.by());
        end.saturating_duration_since(Instant::now())
    }

    /// Waits before the next attempt, longer each time; says whether there is to be one.
    pub(super) fn pause(&mut self) -> bool {
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSE_MAX);
        self.wait(pause)
    }

    /// Waits; says whether any is left.
    pub(super) fn wait(&self, pause: Duration) -> bool {
        let begun = Instant::now();
        let mut by = self.closing.by();
        loop {
            let now = Instant::now();
            let end = self.end(*by);
            if now >= end {
                return false;
            }
            let left = (begun + pause).min(end).saturating_duration_since(now);
            if left.is_zero() {
                return true;
            }
            by = match self.closing.set.wait_timeout(by, left) {
                Ok((by, _)) => by,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}
