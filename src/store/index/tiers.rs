//! Where look-ups look, from the oldest to the newest: runs, a table that is being sealed, and the
//! one that is filled.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::known::{Known, halves};
use super::manifest::Covered;
use super::run::Run;
use super::table::Table;
use crate::key::Fingerprint;
use crate::record::NextOffset;
use crate::store::{Mark, PartitionId, StoreError};

/// A table that is full, and the places up to which all before it and in it is covered.
pub(super) struct Frozen {
    pub(super) table: Arc<Table>,
    pub(super) covered: Covered,
}

/// One state of the index. What a look-up sees does not change under it.
#[derive(Clone, Default)]
pub(super) struct Tiers {
    /// From the oldest to the newest.
    pub(super) runs: Vec<Run>,
    pub(super) frozen: Option<Arc<Frozen>>,
    pub(super) active: Arc<Table>,
    /// Where each partition's log begins: what lies below was dropped on purpose.
    pub(super) floors: BTreeMap<PartitionId, NextOffset>,
}

impl Tiers {
    /// Whether a mark counts any more.
    pub(super) fn counts(&self, known: &Known) -> bool {
        self.counts_at(known.id(), known.offset)
    }

    /// Whether one of a record there does.
    pub(super) fn counts_at(&self, id: PartitionId, offset: i64) -> bool {
        let floor = self.floors.get(&id);
        floor.is_none_or(|floor| offset >= floor.get())
    }

    /// Never back down: two who expire at once may come here in either order.
    pub(super) fn raise_floor(&mut self, id: PartitionId, front: NextOffset) {
        let floor = self.floors.entry(id).or_insert(front);
        *floor = front.max(*floor);
    }

    /// What says which marks count, and holds nothing in memory.
    pub(super) fn without_runs(&self) -> Self {
        Self {
            floors: self.floors.clone(),
            ..Self::default()
        }
    }

    /// One answer a key, in order. A key may have a mark in several tiers: of two of one rank the
    /// older stands, as in one table.
    pub(super) fn lookup(
        &self,
        keys: &[Fingerprint],
        found: &mut Vec<Option<Mark>>,
    ) -> Result<(), StoreError> {
        let mut best: Vec<Option<Known>> = vec![None; keys.len()];
        // Run by run: the misses of one filter's many reads overlap.
        for run in &self.runs {
            for (key, best) in keys.iter().zip(&mut best) {
                if run.may_hold(halves(key).0) {
                    self.take(run.find(key)?.as_ref(), best);
                }
            }
        }
        let frozen = self.frozen.iter().map(|frozen| &frozen.table);
        for table in frozen.chain([&self.active]) {
            let mut places = best.iter_mut();
            table.each(keys, |known| {
                if let Some(best) = places.next() {
                    self.take(known, best);
                }
            });
        }
        found.clear();
        found.extend(best.iter().map(|known| known.as_ref().map(Known::mark)));
        Ok(())
    }

    fn take(&self, known: Option<&Known>, best: &mut Option<Known>) {
        let Some(known) = known.filter(|known| self.counts(known)) else {
            return;
        };
        if best.is_none_or(|best| best.rank() < known.rank()) {
            *best = Some(*known);
        }
    }

    /// How many marks there are.
    pub(super) fn len(&self) -> u64 {
        let runs: u64 = self.runs.iter().map(|run| run.keys).sum();
        let frozen = self.frozen.as_ref().map_or(0, |frozen| frozen.table.len());
        runs + (frozen + self.active.len()) as u64
    }
}

/// The state that counts now.
#[derive(Default)]
pub(super) struct Current(RwLock<Arc<Tiers>>);

impl Current {
    pub(super) fn get(&self) -> Arc<Tiers> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a changed state in its place. Look-ups that run go on in the one that they began in.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Tiers) -> T) -> T {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = Tiers::clone(&current);
        let done = change(&mut next);
        *current = Arc::new(next);
        done
    }
}
