//! Telling a lane to end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// Tells a lane to end after the record in hand.
#[derive(Default)]
pub(crate) struct Stop {
    set: AtomicBool,
    /// The same, for those who wait in a future.
    token: CancellationToken,
    /// Until when what must be finished is tried.
    patience: OnceLock<Instant>,
    /// Set when its time is up.
    late: CancellationToken,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Stop {
    pub(super) fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Tells it to end, and how long what must be finished may be tried.
    pub(super) fn set(&self, patience: Duration) {
        // Set once: nobody stops a lane twice.
        let _ = self.patience.set(Instant::now() + patience);
        let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.set.store(true, Ordering::Release);
        self.token.cancel();
        self.changed.notify_all();
    }

    pub(super) fn token(&self) -> &CancellationToken {
        &self.token
    }

    pub(super) fn patience(&self) -> Option<Instant> {
        self.patience.get().copied()
    }

    /// Nobody waits for it any more.
    pub(super) fn set_late(&self) {
        self.late.cancel();
    }

    pub(super) fn late(&self) -> &CancellationToken {
        &self.late
    }

    /// Sleeps for `pause`, or until set; says whether it is set.
    pub(super) fn sleep(&self, pause: Duration) -> bool {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let slept = self
            .changed
            .wait_timeout_while(guard, pause, |()| !self.is_set());
        drop(slept.unwrap_or_else(PoisonError::into_inner));
        self.is_set()
    }
}
