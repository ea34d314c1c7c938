//! A clock that tests set.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::{Clock, ms};

/// A [`Clock`] that stands still until it is moved. Its date and the time that has passed are moved
/// together, or the date by itself, as if somebody had set it.
#[derive(Debug)]
pub struct ManualClock {
    now_ms: AtomicI64,
    elapsed_ms: AtomicU64,
}

impl ManualClock {
    /// A clock that stands at `now_ms`, in milliseconds since 1970.
    #[must_use]
    pub fn new(now_ms: i64) -> Self {
        Self {
            now_ms: AtomicI64::new(now_ms),
            elapsed_ms: AtomicU64::new(0),
        }
    }

    /// Time passes.
    pub fn advance(&self, by: Duration) {
        let by_ms = ms(by);
        self.now_ms.fetch_add(by_ms, Ordering::SeqCst);
        self.elapsed_ms
            .fetch_add(by_ms.unsigned_abs(), Ordering::SeqCst);
    }

    /// Somebody sets the date; no time passes.
    pub fn set_ms(&self, now_ms: i64) {
        self.now_ms.store(now_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.elapsed_ms.load(Ordering::SeqCst))
    }
}
