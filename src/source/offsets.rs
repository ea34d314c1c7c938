//! Positions on their way to the group: the newest of each partition, one request at a time.
//!
//! A refused commit is sent again, with the newest value and never an older one. The group's
//! positions are advisory, the store is the truth; but a group that stands still would replay all
//! of it to the next member, and shows lag to its operator.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::engine::Committed;
use crate::record::{NextOffset, TopicPartition};

const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(5);

struct Position {
    newest: Option<NextOffset>,
    confirmed: Option<NextOffset>,
}

impl Position {
    /// What the group does not know yet.
    fn open(&self) -> Option<NextOffset> {
        self.newest.filter(|_| self.newest > self.confirmed)
    }
}

/// What is committed, what is to be, and what is on its way.
pub(crate) struct Offsets {
    interval: Duration,
    positions: HashMap<TopicPartition, Position>,
    in_flight: bool,
    next_at: Option<Instant>,
    retry: Duration,
}

impl Offsets {
    /// Commits at most once per `interval`.
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            interval,
            positions: HashMap::new(),
            in_flight: false,
            next_at: None,
            retry: RETRY_MIN,
        }
    }

    /// A partition begins, where the group has it.
    ///
    /// Nothing below that is ever sent: a restore works below it, and a crash after a step back
    /// would have the records in between handled again.
    pub(crate) fn begin(&mut self, partition: TopicPartition, committed: Option<NextOffset>) {
        let position = Position {
            newest: committed,
            confirmed: committed,
        };
        self.positions.insert(partition, position);
    }

    /// A partition has come further. Positions only ever grow. A partition that has not begun, or
    /// was given up, is somebody else's by now: late news of it are dropped.
    pub(crate) fn reached(&mut self, committed: &Committed) {
        if let Some(position) = self.positions.get_mut(&committed.partition) {
            position.newest = position.newest.max(Some(committed.next));
        }
    }

    /// What to send now, if anything.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Vec<Committed>> {
        if self.in_flight || self.next_at.is_some_and(|at| now < at) {
            return None;
        }
        let open = self.unconfirmed();
        if open.is_empty() {
            return None;
        }
        self.in_flight = true;
        Some(open)
    }

    /// The answer to the request under way.
    pub(crate) fn answered<E>(&mut self, answer: Result<Vec<Committed>, E>, now: Instant) {
        self.in_flight = false;
        let Ok(committed) = answer else {
            self.next_at = Some(now + self.retry);
            self.retry = (self.retry * 2).min(RETRY_MAX);
            return;
        };
        for done in committed {
            if let Some(position) = self.positions.get_mut(&done.partition) {
                position.confirmed = position.confirmed.max(Some(done.next));
            }
        }
        self.retry = RETRY_MIN;
        self.next_at = Some(now + self.interval);
    }

    /// What the group has said that it knows.
    pub(crate) fn confirmed(&self, partition: &TopicPartition) -> Option<NextOffset> {
        self.positions.get(partition)?.confirmed
    }

    /// What the group does not know yet.
    pub(crate) fn unconfirmed(&self) -> Vec<Committed> {
        self.positions
            .iter()
            .filter_map(|(partition, position)| {
                let next = position.open()?;
                let partition = partition.clone();
                Some(Committed { partition, next })
            })
            .collect()
    }

    /// The partition is somebody else's: nothing of it is sent any more, and what is kept of it
    /// does not come back to life with it.
    pub(crate) fn forget(&mut self, partition: &TopicPartition) -> Option<Committed> {
        let (partition, position) = self.positions.remove_entry(partition)?;
        let next = position.open()?;
        Some(Committed { partition, next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(partition: i32, next: i64) -> Committed {
        Committed {
            partition: TopicPartition::new("t", partition),
            next: NextOffset::new(next).unwrap(),
        }
    }

    /// Two partitions that the group has not committed yet.
    fn begun(interval: Duration) -> Offsets {
        let mut offsets = Offsets::new(interval);
        offsets.begin(TopicPartition::new("t", 0), None);
        offsets.begin(TopicPartition::new("t", 1), None);
        offsets
    }

    // C010, C011, C012
    #[test]
    fn a_refused_commit_is_sent_again_with_the_newest_value_alone() {
        let (mut offsets, start) = (begun(Duration::from_secs(1)), Instant::now());
        offsets.reached(&at(0, 10));
        assert_eq!(offsets.due(start), Some(vec![at(0, 10)]));
        offsets.reached(&at(0, 20));
        assert_eq!(offsets.due(start), None, "one request at a time");
        offsets.answered(Err(()), start);
        assert_eq!(offsets.due(start), None, "not at once");
        let later = start + RETRY_MIN;
        assert_eq!(offsets.due(later), Some(vec![at(0, 20)]));
        offsets.answered(Err(()), later);
        assert_eq!(offsets.due(later + RETRY_MIN), None, "the pause grows");
        let later = later + 2 * RETRY_MIN;
        assert_eq!(offsets.due(later), Some(vec![at(0, 20)]));
        offsets.answered(Ok::<_, ()>(vec![at(0, 20)]), later);
        assert_eq!(
            offsets.due(later + Duration::from_secs(9)),
            None,
            "nothing is left to say"
        );
    }

    #[test]
    fn positions_only_grow() {
        let (mut offsets, start) = (begun(Duration::ZERO), Instant::now());
        offsets.reached(&at(0, 20));
        offsets.reached(&at(0, 10));
        assert_eq!(offsets.due(start), Some(vec![at(0, 20)]));
        offsets.answered(Ok::<_, ()>(vec![at(0, 20)]), start);
        offsets.reached(&at(0, 15));
        assert_eq!(offsets.due(start), None);
    }

    // C032, C034, C035
    #[test]
    fn a_partition_given_up_leaves_nothing_behind() {
        let (mut offsets, start) = (begun(Duration::ZERO), Instant::now());
        offsets.reached(&at(0, 10));
        offsets.reached(&at(1, 5));
        assert_eq!(offsets.forget(at(0, 0).partition()), Some(at(0, 10)));
        assert_eq!(offsets.due(start), Some(vec![at(1, 5)]));
        // An answer or a commit that comes late brings nothing back.
        offsets.answered(Ok::<_, ()>(vec![at(0, 10), at(1, 5)]), start);
        offsets.reached(&at(0, 12));
        assert_eq!(offsets.due(start), None);
        // Nor when the partition comes back, from where its other owner left it.
        offsets.begin(TopicPartition::new("t", 0), NextOffset::new(50));
        offsets.reached(&at(0, 12));
        assert_eq!(offsets.due(start), None);
        offsets.reached(&at(0, 51));
        assert_eq!(offsets.due(start), Some(vec![at(0, 51)]));
    }

    #[test]
    fn what_the_group_has_is_never_taken_back_by_a_restore_below_it() {
        let (mut offsets, start) = (begun(Duration::ZERO), Instant::now());
        offsets.begin(TopicPartition::new("t", 0), NextOffset::new(100));
        offsets.reached(&at(0, 60));
        assert_eq!(offsets.due(start), None);
        offsets.reached(&at(0, 101));
        assert_eq!(offsets.due(start), Some(vec![at(0, 101)]));
    }

    impl Committed {
        fn partition(&self) -> &TopicPartition {
            &self.partition
        }
    }
}
