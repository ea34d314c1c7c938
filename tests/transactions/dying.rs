//! A store whose process dies right before it writes its marks.

use std::sync::atomic::{AtomicUsize, Ordering};

use idempotent_consumer::key::{Fingerprint, HashKey};
use idempotent_consumer::store::{
    Claims, CommitUnit, Gaps, Head, Lease, Mark, Owner, PartitionId, Place, SledStore, Store,
    StoreError, Summary,
};
use idempotent_consumer::{Access, EffectStore, Effects, TopicPartition};

pub(crate) struct Dying {
    pub(crate) inner: SledStore,
    /// How many commits are written before.
    pub(crate) commits: AtomicUsize,
}

impl EffectStore for Dying {
    type Effects = Effects;

    fn access(self: std::sync::Arc<Self>) -> Access<Effects> {
        Access::recorded()
    }
}

impl Store for Dying {
    fn commit(&self, units: &[CommitUnit]) -> Result<(), StoreError> {
        let entries = units.iter().any(|unit| !unit.entries.is_empty());
        if entries && self.commits.fetch_sub(1, Ordering::Relaxed) == 0 {
            std::process::abort();
        }
        self.inner.commit(units)
    }

    fn bind(&self, owner: &Owner) -> Result<HashKey, StoreError> {
        self.inner.bind(owner)
    }

    fn bind_cluster(&self, cluster_id: &str) -> Result<(), StoreError> {
        self.inner.bind_cluster(cluster_id)
    }

    fn lease(&self, partition: &TopicPartition) -> Result<Lease, StoreError> {
        self.inner.lease(partition)
    }

    fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.inner.release(lease)
    }

    fn lookup(
        &self,
        keys: &[Fingerprint],
        found: &mut Vec<Option<Mark>>,
    ) -> Result<(), StoreError> {
        self.inner.lookup(keys, found)
    }

    fn unit_behind(
        &self,
        id: PartitionId,
        place: Place,
    ) -> Result<Option<(Place, CommitUnit)>, StoreError> {
        self.inner.unit_behind(id, place)
    }

    fn gaps(&self, id: PartitionId) -> Gaps {
        self.inner.gaps(id)
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn heads(&self) -> Vec<(TopicPartition, Option<Head>)> {
        self.inner.heads()
    }

    fn summary(&self) -> Summary {
        self.inner.summary()
    }

    fn id(&self) -> Option<String> {
        self.inner.id()
    }
}
