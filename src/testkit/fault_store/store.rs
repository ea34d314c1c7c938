//! The store's face: each call is an operation that may be told to fail.

use super::{FaultStore, Operation};
use crate::key::{Fingerprint, HashKey};
use crate::record::{NextOffset, TopicPartition};
use crate::store::{
    Claims, CommitUnit, Gaps, Head, Lease, Mark, Owner, PartitionId, Place, Store, StoreError,
    Summary,
};

impl<S: Store> Store for FaultStore<S> {
    fn bind(&self, owner: &Owner) -> Result<HashKey, StoreError> {
        self.perform(Operation::Bind, |inner| inner.bind(owner))
    }

    fn bind_cluster(&self, cluster_id: &str) -> Result<(), StoreError> {
        self.perform(Operation::BindCluster, |inner| {
            inner.bind_cluster(cluster_id)
        })
    }

    fn lease(&self, partition: &TopicPartition) -> Result<Lease, StoreError> {
        self.perform(Operation::Lease, |inner| inner.lease(partition))
    }

    fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.perform(Operation::Release, |inner| inner.release(lease))
    }

    fn lookup(
        &self,
        keys: &[Fingerprint],
        found: &mut Vec<Option<Mark>>,
    ) -> Result<(), StoreError> {
        self.perform(Operation::Lookup, |inner| inner.lookup(keys, found))
    }

    fn unit_behind(
        &self,
        id: PartitionId,
        place: Place,
    ) -> Result<Option<(Place, CommitUnit)>, StoreError> {
        self.perform(Operation::UnitBehind, |inner| inner.unit_behind(id, place))
    }

    fn gaps(&self, id: PartitionId) -> Gaps {
        self.inner.gaps(id)
    }

    fn retained_from(&self, id: PartitionId) -> NextOffset {
        self.inner.retained_from(id)
    }

    fn restore_until(&self, id: PartitionId) -> NextOffset {
        self.inner.restore_until(id)
    }

    fn restores(&self, lease: &Lease, until: NextOffset) -> Result<(), StoreError> {
        self.inner.restores(lease, until)
    }

    fn result(&self, key: &Fingerprint, mark: &Mark) -> Result<Option<Vec<u8>>, StoreError> {
        self.perform(Operation::Result, |inner| inner.result(key, mark))
    }

    fn journal(&self, unit: &CommitUnit) -> bool {
        // It cannot fail, so it is not counted; a dead process keeps nothing.
        !self.has_crashed() && self.inner.journal(unit)
    }

    fn may_lack_kept(&self, id: PartitionId) -> bool {
        self.inner.may_lack_kept(id)
    }

    fn commit(&self, units: &[CommitUnit]) -> Result<(), StoreError> {
        self.perform(Operation::Commit, |inner| inner.commit(units))
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

    fn effects_in_commit(&self) -> bool {
        self.inner.effects_in_commit()
    }
}
