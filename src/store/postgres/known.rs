//! The partitions as they were last read. What is decided with them, the database checks again.

use super::rows::Kept;
use crate::record::{NextOffset, TopicPartition};
use crate::store::{Gaps, Head, PartitionId};

/// All partitions, by their dense number.
#[derive(Default)]
pub(super) struct Known(Vec<Kept>);

impl Known {
    /// Takes in what was read of all. A commit may have been taken in since it was read.
    pub(super) fn refresh(&mut self, all: Vec<Kept>) {
        let age = |kept: &Kept| (kept.partition.epoch, kept.partition.place);
        let mut old = std::mem::replace(&mut self.0, all);
        for (now, before) in self.0.iter_mut().zip(&mut old) {
            if age(before) > age(now) {
                std::mem::swap(now, before);
            }
        }
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

    pub(super) fn heads(&self) -> Vec<(TopicPartition, Option<Head>)> {
        let each = self.0.iter().map(|kept| &kept.partition);
        each.map(|one| (one.name.clone(), one.head)).collect()
    }

    pub(super) fn ids(&self) -> Vec<PartitionId> {
        self.0.iter().map(|kept| kept.id).collect()
    }
}
