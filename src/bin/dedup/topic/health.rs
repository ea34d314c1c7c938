//! Whether it works, for whoever asks over `/readyz` and `/healthz`.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use idempotent_consumer::TopicPartition;

/// Half of what a transaction is tried for, 120 s, after which the program ends: whoever watches
/// learns of it before.
const STUCK: Duration = Duration::from_secs(60);
/// Twice as long as a transaction is tried for: what has not ended by then, in success or failure,
/// never will.
const LOST: Duration = Duration::from_secs(240);

#[derive(Default)]
pub(super) struct Health {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    assigned: Vec<TopicPartition>,
    /// How far those are that are read for their keys first.
    restoring: HashMap<TopicPartition, String>,
    /// Since when a commit has been under way.
    committing: Option<Instant>,
    draining: bool,
}

impl State {
    /// How long the commit under way has taken, where that is longer than this.
    fn longer_than(&self, limit: Duration) -> Option<u64> {
        let waiting = self.committing?.elapsed();
        (waiting > limit).then_some(waiting.as_secs())
    }
}

impl Health {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These partitions are assigned from now on.
    pub(super) fn assigned(&self, partitions: &[TopicPartition]) {
        let mut state = self.state();
        state.assigned = partitions.to_vec();
        // Nobody tells the end of a restore that was broken off.
        state.restoring.retain(|name, _| partitions.contains(name));
    }

    pub(super) fn partitions(&self) -> usize {
        self.state().assigned.len()
    }

    /// A partition is read for its keys, and is so far; `None` at the end.
    pub(super) fn restoring(&self, partition: &TopicPartition, so_far: Option<String>) {
        let mut state = self.state();
        match so_far {
            // What is late, of a partition that is another's by now, would never end here.
            Some(so_far) if state.assigned.contains(partition) => {
                state.restoring.insert(partition.clone(), so_far);
            }
            _ => {
                state.restoring.remove(partition);
            }
        }
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
        if state.assigned.is_empty() {
            return Some("no partition is assigned".to_owned());
        }
        if let Some(seconds) = state.longer_than(STUCK) {
            return Some(format!("a commit has not ended for {seconds} s"));
        }
        let (partition, so_far) = state.restoring.iter().next()?;
        let count = state.restoring.len();
        Some(format!(
            "{count} of {} partitions are read for their keys first; {partition} is {so_far}",
            state.assigned.len()
        ))
    }

    /// Why nothing but another start helps; `None` where it lives.
    pub(super) fn lifeless(&self) -> Option<String> {
        let seconds = self.state().longer_than(LOST)?;
        Some(format!("a commit has not ended for {seconds} s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(number: i32) -> TopicPartition {
        TopicPartition::new("orders", number)
    }

    fn with(count: i32) -> Health {
        let health = Health::default();
        health.assigned(&(0..count).map(partition).collect::<Vec<_>>());
        health
    }

    #[test]
    fn ready_is_who_has_a_partition_and_no_commit_that_hangs() {
        let none = Health::default();
        assert!(none.unready().is_some_and(|why| why.contains("assigned")));
        let health = with(3);
        assert_eq!((health.unready(), health.partitions()), (None, 3));
        health.commit_begins();
        assert_eq!(health.unready(), None, "a commit is no reason");
        health.state().committing = Instant::now().checked_sub(STUCK + Duration::from_secs(5));
        assert!(health.unready().is_some_and(|why| why.contains("65 s")));
        assert_eq!(health.lifeless(), None, "it may still be tried");
        health.state().committing = Instant::now().checked_sub(LOST + Duration::from_secs(5));
        assert!(health.lifeless().is_some_and(|why| why.contains("245 s")));
        health.commit_ends();
        assert_eq!((health.unready(), health.lifeless()), (None, None));
        health.assigned(&[]);
        assert!(health.unready().is_some());
    }

    #[test]
    fn who_reads_a_partition_for_its_keys_is_not_ready_and_says_how_far_it_is() {
        let health = with(2);
        health.restoring(&partition(1), Some("at 5 of 10".to_owned()));
        let why = health.unready().unwrap_or_default();
        assert!(why.contains("1 of 2 partitions"), "{why}");
        assert!(why.contains("orders[1] is at 5 of 10"), "{why}");
        health.restoring(&partition(1), None);
        assert_eq!(health.unready(), None);
        // Taken away in the middle of it, and one that is another's by now.
        health.restoring(&partition(1), Some(String::new()));
        health.assigned(&[partition(0)]);
        health.restoring(&partition(1), Some(String::new()));
        assert_eq!(health.unready(), None);
    }

    #[test]
    fn the_end_is_not_ready() {
        let ended = with(1);
        ended.draining();
        assert!(ended.unready().is_some());
    }
}
