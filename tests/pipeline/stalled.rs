//! A store on disk whose device stops to answer, for what happens before a commit is durable.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use idempotent_consumer::TopicPartition;
use idempotent_consumer::key::{Fingerprint, HashKey};
use idempotent_consumer::store::{
    Claims, CommitUnit, Gaps, Head, Lease, Mark, Owner, PartitionId, Place, SledStore, Store,
    StoreError, Summary,
};
use idempotent_consumer::{Access, EffectStore, Effects};

use crate::support::sled;

/// A sled store all of whose commits wait for ever, but for the first ones.
pub(crate) struct Stalled {
    store: SledStore,
    commits: AtomicUsize,
}

impl Stalled {
    pub(crate) fn after(commits: usize, directory: &Path) -> Self {
        Self {
            store: sled(directory),
            commits: AtomicUsize::new(commits),
        }
    }
}

impl Store for Stalled {
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

    fn journal(&self, unit: &CommitUnit) -> bool {
        self.store.journal(unit)
    }

    fn may_lack_kept(&self, id: PartitionId) -> bool {
        self.store.may_lack_kept(id)
    }

    fn commit(&self, units: &[CommitUnit]) -> Result<(), StoreError> {
        let left = |left: usize| left.checked_sub(1);
        let (now, fail) = (Ordering::SeqCst, Ordering::SeqCst);
        if self.commits.fetch_update(now, fail, left).is_err() {
            loop {
                std::thread::park();
            }
        }
        self.store.commit(units)
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
}

impl EffectStore for Stalled {
    type Effects = Effects;

    fn access(self: Arc<Self>) -> Access<Effects> {
        Access::recorded()
    }
}
