//! A store in memory: for tests, and the model that other stores are compared with.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::front::{self, Aged, Fore};
use super::index::Table;
use super::partitions::Partitions;
use super::tail::{Moment, Tail};
use super::{
    Claims, CommitUnit, Durability, Expired, Expiry, Gaps, Head, Lease, Mark, Owner, PartitionId,
    Place, Retained, Retaining, Store, StoreError, Summary, Usage, format,
};
use crate::clock::{Clock, SystemClock};
use crate::key::{Fingerprint, HashKey};
use crate::record::{NextOffset, TopicPartition};

/// A store that lives as long as its process. Everything is lost with it.
pub struct MemoryStore {
    index: Table,
    claims: Claims,
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }
}

#[derive(Default)]
struct State {
    owner: Option<Owner>,
    cluster: Option<String>,
    partitions: Partitions,
    log: BTreeMap<(PartitionId, Place), (CommitUnit, Tail)>,
}

impl State {
    fn behind(&self, id: PartitionId, place: Place) -> Option<(Place, &CommitUnit, &Tail)> {
        let behind = (Bound::Excluded((id, place)), Bound::Unbounded);
        let ((of, place), (unit, tail)) = self.log.range(behind).next()?;
        (*of == id).then_some((*place, unit, tail))
    }

    fn fore_behind(&self, id: PartitionId, place: Place) -> Option<Fore> {
        let (place, unit, tail) = self.behind(id, place)?;
        Some(Fore {
            place,
            aged: Aged {
                tail: Some(*tail),
                max_timestamp_ms: unit.max_timestamp_ms,
            },
            bytes: format::encoded_bytes(unit) as u64,
            unit: unit.clone(),
        })
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store that goes by another clock than the system's.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self {
            index: Table::default(),
            claims: Claims::default(),
            state: Mutex::default(),
            clock,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn bind(&self, owner: &Owner) -> Result<HashKey, StoreError> {
        let mut state = self.state();
        match &state.owner {
            Some(theirs) => super::owner_matches("the memory store", theirs, owner)?,
            None => state.owner = Some(owner.clone()),
        }
        Ok(HashKey([0; 16]))
    }

    fn bind_cluster(&self, cluster_id: &str) -> Result<(), StoreError> {
        let mut state = self.state();
        let theirs = state.cluster.get_or_insert_with(|| cluster_id.to_owned());
        super::same("the memory store", "cluster", theirs, cluster_id)
    }

    fn lease(&self, partition: &TopicPartition) -> Result<Lease, StoreError> {
        let partitions = &mut self.state().partitions;
        let (id, _) = partitions.register(partition)?;
        partitions.lease(id)
    }

    fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.state().partitions.release(lease)
    }

    fn lookup(
        &self,
        keys: &[Fingerprint],
        found: &mut Vec<Option<Mark>>,
    ) -> Result<(), StoreError> {
        self.index.lookup(keys, found);
        Ok(())
    }

    fn unit_behind(
        &self,
        id: PartitionId,
        place: Place,
    ) -> Result<Option<(Place, CommitUnit)>, StoreError> {
        let state = self.state();
        let unit = state.behind(id, place);
        Ok(unit.map(|(place, unit, _)| (place, unit.clone())))
    }

    fn gaps(&self, id: PartitionId) -> Gaps {
        self.state().partitions.gaps(id)
    }

    fn retained_from(&self, id: PartitionId) -> NextOffset {
        self.state().partitions.retained_from(id)
    }

    fn retaining(&self) -> Option<&dyn Retaining> {
        Some(self)
    }

    fn commit(&self, units: &[CommitUnit]) -> Result<(), StoreError> {
        let mut state = self.state();
        state.partitions.check_all(units)?;
        let now = Moment::Now(self.clock.now_ms());
        for unit in units {
            let place = state.partitions.place_of(unit)?;
            let tail = state.partitions.tail_of(unit, now);
            let bytes = format::encoded_bytes(unit) as u64;
            state.partitions.advance(unit, tail, bytes)?;
            let kept = CommitUnit {
                entries: unit.entries.clone(),
                gaps: unit.gaps.clone(),
                // Sent, and never asked for again.
                outbox: Vec::new(),
                ..*unit
            };
            state.log.insert((unit.id, place), (kept, tail));
            // A mark goes with its unit, and not before.
            self.index.insert(unit, |_, _| true);
        }
        Ok(())
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn heads(&self) -> Vec<(TopicPartition, Option<Head>)> {
        self.state()
            .partitions
            .iter()
            .map(|(_, p)| (p.name.clone(), p.head))
            .collect()
    }

    fn summary(&self) -> Summary {
        Summary {
            place: "memory store".to_owned(),
            keys: self.index.len() as u64,
            partitions: self.state().partitions.len() as u64,
            durability: Durability::None,
        }
    }
}

impl Retaining for MemoryStore {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn usage(&self) -> Usage {
        self.state().partitions.usage()
    }

    fn retained(&self) -> Result<Vec<Retained>, StoreError> {
        let state = self.state();
        let oldest = |id, front| {
            let fore = state.fore_behind(id, Place::from(front));
            fore.map(|fore| fore.aged)
        };
        let list = state.partitions.iter();
        Ok(list
            .filter_map(|(id, one)| one.retained(id, oldest(id, one.front?)?))
            .collect())
    }

    fn would_expire(&self, expiry: &Expiry) -> Result<u64, StoreError> {
        let state = self.state();
        match state.partitions.get(expiry.id) {
            Some(one) => front::count(expiry, one, |at| Ok(state.fore_behind(expiry.id, at))),
            None => Ok(0),
        }
    }

    fn expire(&self, expiry: &Expiry) -> Result<Expired, StoreError> {
        let mut state = self.state();
        let step = match state.partitions.get(expiry.id) {
            Some(one) => front::choose(expiry, one, |at| Ok(state.fore_behind(expiry.id, at)))?,
            None => None,
        };
        let Some(step) = step else {
            return Ok(Expired::default());
        };
        state.partitions.expire(expiry.id, step.front, step.total)?;
        for fore in &step.fores {
            state.log.remove(&(expiry.id, fore.place));
            self.index.remove(&fore.unit);
        }
        Ok(step.expired())
    }
}
