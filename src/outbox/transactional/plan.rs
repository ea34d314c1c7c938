//! What one transaction carries for the units that it is for.

use super::sender::Part;
use crate::outbox::round::Load;
use crate::record::{NextOffset, TopicPartition};

pub(super) struct Plan<'a> {
    pub(super) load: Load<'a>,
    /// For each position, whether it moves the group.
    moves: Vec<bool>,
}

impl<'a> Plan<'a> {
    /// `reached` says where the group stands.
    ///
    /// It must not be set back: a restore is behind it, and so is what was forgotten. Its position is
    /// sent all the same, so that the group checks who sends.
    pub(super) fn new(
        parts: &[Part<'a>],
        reached: impl Fn(&Part<'a>) -> Option<NextOffset>,
    ) -> Self {
        let mut positions = Vec::with_capacity(parts.len());
        let mut moves = Vec::with_capacity(parts.len());
        for part in parts {
            let reached = reached(part);
            moves.push(Some(part.next) > reached);
            positions.push((
                part.name.clone(),
                reached.max(Some(part.next)).unwrap_or_default(),
            ));
        }
        let records = parts.iter().flat_map(|part| part.records).collect();
        Self {
            load: Load { records, positions },
            moves,
        }
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.load.records.is_empty() && !self.moves.contains(&true)
    }

    /// The positions that move the group, and so tell whether the transaction was committed.
    pub(super) fn moved(&self) -> impl Iterator<Item = &(TopicPartition, NextOffset)> {
        let all = self.load.positions.iter().zip(&self.moves);
        all.filter(|(_, moves)| **moves)
            .map(|(position, _)| position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::Outgoing;
    use crate::store::PartitionId;

    fn part(records: &[Outgoing], next: i64) -> Part<'_> {
        Part {
            id: PartitionId(0),
            epoch: 1,
            name: TopicPartition::new("in", 0),
            next: NextOffset::new(next).unwrap(),
            records,
        }
    }

    fn sent(plan: &Plan<'_>) -> Vec<i64> {
        let positions = plan.load.positions.iter();
        positions.map(|(_, next)| next.get()).collect()
    }

    #[test]
    fn the_group_is_never_set_back_and_where_nothing_moves_nothing_is_sent() {
        let restoring = [part(&[], 50)];
        let behind = Plan::new(&restoring, |_| NextOffset::new(100));
        assert!(behind.is_nothing());
        let ahead = Plan::new(&restoring, |_| NextOffset::new(49));
        assert!(!ahead.is_nothing());
        assert_eq!((sent(&ahead), ahead.moved().count()), (vec![50], 1));
        let first = Plan::new(&restoring, |_| None);
        assert_eq!((sent(&first), first.moved().count()), (vec![50], 1));
    }

    #[test]
    fn answers_below_the_groups_position_are_sent_with_it() {
        let records = [Outgoing::to("out")];
        let late = [part(&records, 50)];
        let plan = Plan::new(&late, |_| NextOffset::new(100));
        assert!(!plan.is_nothing());
        assert_eq!((sent(&plan), plan.moved().count()), (vec![100], 0));
    }
}
