//! A store in memory: for tests, and the model that other stores are compared with.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::format::log_key;
use super::index::Index;
use super::partitions::Partitions;
use super::{
    Claims, CommitUnit, Durability, Head, Lease, Mark, Owner, PartitionId, Store, StoreError,
    Summary,
};
use crate::key::{Fingerprint, HashKey};
use crate::record::{NextOffset, TopicPartition};

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
    log: BTreeMap<[u8; 12], CommitUnit>,
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
        position: NextOffset,
    ) -> Result<Option<CommitUnit>, StoreError> {
        let from = log_key(id, NextOffset::after(position.get()));
        let unit = self
            .state()
            .log
            .range(from..)
            .next()
            .map(|(_, unit)| unit.clone());
        Ok(unit.filter(|unit| unit.id == id))
    }

    fn commit(&self, units: &[CommitUnit]) -> Result<(), StoreError> {
        let mut state = self.state();
        state.partitions.check_all(units)?;
        for unit in units {
            state.partitions.advance(unit)?;
            state.log.insert(log_key(unit.id, unit.next), unit.clone());
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
