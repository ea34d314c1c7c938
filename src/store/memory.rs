//! A store in memory: for tests, and the model that other stores are compared with.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::index::Index;
use super::partitions::Partitions;
use super::{
    Claims, CommitUnit, Durability, Gaps, Head, Lease, Mark, Owner, PartitionId, Place, Store,
    StoreError, Summary,
};
use crate::key::{Fingerprint, HashKey};
use crate::record::TopicPartition;

/// A store that lives as long as its process. Everything is lost with it.
#[derive(Default)]
pub struct MemoryStore {
    index: Index,
    claims: Claims,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    owner: Option<Owner>,
    cluster: Option<String>,
    partitions: Partitions,
    log: BTreeMap<(PartitionId, Place), CommitUnit>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
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
        let behind = (Bound::Excluded((id, place)), Bound::Unbounded);
        let next = state.log.range(behind).next();
        let unit = next.map(|((_, place), unit)| (*place, unit.clone()));
        Ok(unit.filter(|(_, unit)| unit.id == id))
    }

    fn gaps(&self, id: PartitionId) -> Gaps {
        self.state().partitions.gaps(id)
    }

    fn commit(&self, units: &[CommitUnit]) -> Result<(), StoreError> {
        let mut state = self.state();
        state.partitions.check_all(units)?;
        for unit in units {
            let place = state.partitions.place_of(unit)?;
            state.partitions.advance(unit)?;
            let kept = CommitUnit {
                entries: unit.entries.clone(),
                gaps: unit.gaps.clone(),
                // Sent, and never asked for again.
                outbox: Vec::new(),
                ..*unit
            };
            state.log.insert((unit.id, place), kept);
            self.index.insert(unit);
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
