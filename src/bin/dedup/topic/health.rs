//! Whether it works, for whoever asks over `/readyz`.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// A commit that takes longer than this gets nowhere: it is what a transaction is given at most,
/// unless more was chosen, and no disk needs it.
pub(super) const STUCK: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Health {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    partitions: usize,
    /// Since when a commit has been under way.
    committing: Option<Instant>,
    draining: bool,
}

impl Health {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many partitions are assigned from now on.
    pub(super) fn assigned(&self, partitions: usize) {
        self.state().partitions = partitions;
    }

    pub(super) fn partitions(&self) -> usize {
        self.state().partitions
    }

    pub(super) fn commit_begins(&self) {
        self.state().committing = Some(Instant::now());
    }

    /// However it ended: a failure that matters ends the program.
    pub(super) fn commit_ends(&self) {
        self.state().committing = None;
    }

    /// The end was asked for.
    pub(super) fn draining(&self) {
        self.state().draining = true;
    }

    /// Why it is not ready; `None` where it is.
    pub(super) fn unready(&self) -> Option<String> {
        let state = self.state();
        if state.draining {
            return Some("it is being stopped".to_owned());
        }
        if state.partitions == 0 {
            return Some("no partition is assigned".to_owned());
        }
        let waiting = state.committing.map(|since| since.elapsed());
        let stuck = waiting.filter(|waiting| *waiting > STUCK)?;
        Some(format!("a commit has not ended for {} s", stuck.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_is_who_has_a_partition_and_no_commit_that_hangs() {
        let health = Health::default();
        assert!(health.unready().is_some_and(|why| why.contains("assigned")));
        health.assigned(3);
        assert_eq!((health.unready(), health.partitions()), (None, 3));
        health.commit_begins();
        assert_eq!(health.unready(), None, "a commit is no reason");
        health.state().committing = Instant::now().checked_sub(STUCK + Duration::from_secs(5));
        assert!(health.unready().is_some_and(|why| why.contains("65 s")));
        health.commit_ends();
        assert_eq!(health.unready(), None);
        health.assigned(0);
        assert!(health.unready().is_some());
    }

    #[test]
    fn the_end_is_not_ready() {
        let ended = Health::default();
        ended.assigned(1);
        ended.draining();
        assert!(ended.unready().is_some());
    }
}
