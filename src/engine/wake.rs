//! How the committer is called.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// Tells the committer that there is something to do.
#[derive(Default)]
pub(crate) struct Wake {
    state: Mutex<WakeState>,
    changed: Condvar,
}

#[derive(Default)]
struct WakeState {
    /// Something was added: look at the deadlines again.
    stirred: bool,
    /// Commit without waiting for a deadline.
    urgent: bool,
    stop: bool,
}

/// What the committer was woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Deadline,
    Stirred,
    Urgent,
    Stop,
}

impl Wake {
    fn set(&self, change: impl FnOnce(&mut WakeState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    pub(super) fn stir(&self) {
        self.set(|state| state.stirred = true);
    }

    pub(super) fn urge(&self) {
        self.set(|state| state.urgent = true);
    }

    pub(super) fn stop(&self) {
        self.set(|state| state.stop = true);
    }

    /// Waits for a call or until `deadline`.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> Call {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if std::mem::take(&mut state.urgent) {
                return Call::Urgent;
            }
            if state.stop {
                return Call::Stop;
            }
            if std::mem::take(&mut state.stirred) {
                return Call::Stirred;
            }
            state = match deadline {
                None => self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Call::Deadline;
                    }
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}
