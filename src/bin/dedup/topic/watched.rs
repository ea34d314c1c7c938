//! A store that says when it is at work.

use std::sync::Arc;

use idempotent_consumer::{
    Access, EffectStore, NextOffset, TopicPartition,
    key::{Fingerprint, HashKey},
    store::{
        Claims, CommitUnit, Gaps, Head, Lease, Mark, Owner, PartitionId, Place, Retaining, Store,
        StoreError, Summary,
    },
};

use super::health::Health;

/// Passes everything on, and tells of commits.
pub(super) struct Watched<S> {
    store: Arc<S>,
    health: Arc<Health>,
}

impl<S> Watched<S> {
    pub(super) fn new(store: S, health: Arc<Health>) -> Self {
        Self {
            store: Arc::new(store),
            health,
        }
    }
}

impl<S: EffectStore> EffectStore for Watched<S> {
    type Effects = S::Effects;

    fn access(self: Arc<Self>) -> Access<S::Effects> {
        Arc::clone(&self.store).access()
    }
}

impl<S: Store> Store for Watched<S> {
    fn bind(&self, owner: &Owner) -> Result<HashKey, StoreError> {
        self.store.bind(owner)
    }

    fn bind_cluster(&self, cluster_id: &str) -> Result<(), StoreError> {
        self.store.bind_cluster(cluster_id)
    }

    fn lease(&self, partition: &TopicPartition) -> Result<Lease, StoreError> {
        self.store.lease(partition)
    }

    fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.store.release(lease)
    }

    fn lookup(
        &self,
        keys: &[Fingerprint],
        found: &mut Vec<Option<Mark>>,
    ) -> Result<(), StoreError> {
        self.store.lookup(keys, found)
    }

    fn unit_behind(
        &self,
        id: PartitionId,
        place: Place,
    ) -> Result<Option<(Place, CommitUnit)>, StoreError> {
        self.store.unit_behind(id, place)
    }

    fn gaps(&self, id: PartitionId) -> Gaps {
        self.store.gaps(id)
    }

    fn retained_from(&self, id: PartitionId) -> NextOffset {
        self.store.retained_from(id)
    }

    fn retaining(&self) -> Option<&dyn Retaining> {
        self.store.retaining()
    }

    fn restore_until(&self, id: PartitionId) -> NextOffset {
        self.store.restore_until(id)
    }

    fn restores(&self, lease: &Lease, until: NextOffset) -> Result<(), StoreError> {
        self.store.restores(lease, until)
    }

    fn result(&self, key: &Fingerprint, mark: &Mark) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.result(key, mark)
    }

    fn journal(&self, unit: &CommitUnit) -> bool {
        self.store.journal(unit)
    }

    fn may_lack_kept(&self, id: PartitionId) -> bool {
        self.store.may_lack_kept(id)
    }

    fn commit(&self, units: &[CommitUnit]) -> Result<(), StoreError> {
        self.health.commit_begins();
        let committed = self.store.commit(units);
        self.health.commit_ends();
        committed
    }

    fn claims(&self) -> &Claims {
        self.store.claims()
    }

    fn heads(&self) -> Vec<(TopicPartition, Option<Head>)> {
        self.store.heads()
    }

    fn summary(&self) -> Summary {
        self.store.summary()
    }

    fn id(&self) -> Option<String> {
        self.store.id()
    }

    fn effects_in_commit(&self) -> bool {
        self.store.effects_in_commit()
    }
}
