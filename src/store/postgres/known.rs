//! The partitions as they were last read. What is decided with them, the database checks again.

use super::rows::Kept;
use crate::record::{NextOffset, TopicPartition};
use crate::store::{Gaps, Head, PartitionId};

/// All partitions, by their dense number.
#[derive(Default)]
pub(super) struct Known(Vec<Kept>);

impl Known {
    /// Takes in what was read of all. A commit may have been taken in since it was read, and a
    /// partition that was not there yet.
    pub(super) fn refresh(&mut self, all: Vec<Kept>) {
        let age = |kept: &Kept| (kept.partition.epoch, kept.partition.place);
        let mut old = std::mem::replace(&mut self.0, all);
        for (now, before) in self.0.iter_mut().zip(&mut old) {
            if age(before) > age(now) {
                std::mem::swap(now, before);
            }
        }
        let read = self.0.len().min(old.len());
        self.0.extend(old.drain(read..));
    }

    /// Takes a row in. `false` where others before it are missing: all are to be read again.
    pub(super) fn put(&mut self, kept: Kept) -> bool {
        let at = kept.id.0 as usize;
        if at == self.0.len() {
            self.0.push(kept);
            return true;
        }
        match self.0.get_mut(at) {
            Some(place) => {
                *place = kept;
                true
            }
            None => false,
        }
    }

    pub(super) fn get(&self, id: PartitionId) -> Option<&Kept> {
        self.0.get(id.0 as usize)
    }

    pub(super) fn has(&self, id: PartitionId) -> bool {
        self.get(id).is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn gaps(&self, id: PartitionId) -> Gaps {
        let kept = self.get(id);
        kept.map_or_else(Gaps::default, |kept| kept.partition.gaps.clone())
    }

    pub(super) fn retained_from(&self, id: PartitionId) -> NextOffset {
        let kept = self.get(id);
        kept.map_or(NextOffset::ZERO, |kept| kept.retained_from)
    }

    /// Keys below may be missing from now on.
    pub(super) fn retain_from(&mut self, id: PartitionId, next: NextOffset) {
        if let Some(kept) = self.0.get_mut(id.0 as usize) {
            kept.retained_from = kept.retained_from.max(next);
        }
    }

    pub(super) fn restore_until(&self, id: PartitionId) -> NextOffset {
        let kept = self.get(id);
        kept.map_or(NextOffset::ZERO, |kept| kept.restore_until)
    }

    /// Keys below are only read from now on.
    pub(super) fn restores(&mut self, id: PartitionId, until: NextOffset) {
        if let Some(kept) = self.0.get_mut(id.0 as usize) {
            kept.restore_until = kept.restore_until.max(until);
        }
    }

    pub(super) fn heads(&self) -> Vec<(TopicPartition, Option<Head>)> {
        let each = self.0.iter().map(|kept| &kept.partition);
        each.map(|one| (one.name.clone(), one.head)).collect()
    }

    pub(super) fn ids(&self) -> Vec<PartitionId> {
        self.0.iter().map(|kept| kept.id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::partitions::Partition;

    fn kept(id: u32, epoch: u32) -> Kept {
        Kept {
            id: PartitionId(id),
            partition: Partition {
                epoch,
                open: true,
                ..Partition::new(TopicPartition::new("orders", id.cast_signed()))
            },
            retained_from: NextOffset::ZERO,
            restore_until: NextOffset::ZERO,
        }
    }

    #[test]
    fn what_was_read_too_early_takes_nothing_back() {
        let mut known = Known::default();
        assert!(known.put(kept(0, 1)) && known.put(kept(1, 2)) && known.put(kept(2, 1)));
        known.refresh(vec![kept(0, 3), kept(1, 1)]);
        let epochs = [0, 1, 2].map(|id| known.get(PartitionId(id)).unwrap().partition.epoch);
        assert_eq!(epochs, [3, 2, 1]);
        known.refresh(vec![kept(0, 3), kept(1, 2), kept(2, 1), kept(3, 1)]);
        assert_eq!(known.len(), 4);
    }
}
