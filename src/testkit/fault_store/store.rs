//! The store's face: each call is an operation that may be told to fail.

use std::sync::Arc;

use super::{FaultStore, Operation};
use crate::clock::{Clock, SystemClock};
use crate::key::{Fingerprint, HashKey};
use crate::record::{NextOffset, TopicPartition};
use crate::store::{
    Claims, CommitUnit, Expired, Expiry, Gaps, Head, Lease, Mark, Owner, PartitionId, Place,
    Retained, Retaining, Store, StoreError, Summary, Usage,
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

    fn retaining(&self) -> Option<&dyn Retaining> {
        self.inner.retaining().map(|_| self as &dyn Retaining)
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

impl<S: Store> FaultStore<S> {
    fn retainer(&self) -> Result<&dyn Retaining, StoreError> {
        retainer(&self.inner)
    }
}

fn retainer<S: Store>(inner: &S) -> Result<&dyn Retaining, StoreError> {
    let none = "a store that keeps every key was asked to expire some";
    inner.retaining().ok_or(StoreError::Misused(none))
}

impl<S: Store> Retaining for FaultStore<S> {
    fn clock(&self) -> Arc<dyn Clock> {
        match self.retainer() {
            Ok(inner) => inner.clock(),
            // Handed out for an inner store that has one alone.
            Err(_) => Arc::new(SystemClock::new()),
        }
    }

    fn usage(&self) -> Usage {
        self.retainer().map(Retaining::usage).unwrap_or_default()
    }

    fn retained(&self) -> Result<Vec<Retained>, StoreError> {
        self.retainer()?.retained()
    }

    fn would_expire(&self, expiry: &Expiry) -> Result<u64, StoreError> {
        self.retainer()?.would_expire(expiry)
    }

    fn expire(&self, expiry: &Expiry) -> Result<Expired, StoreError> {
        self.perform(Operation::Expire, |inner| retainer(inner)?.expire(expiry))
    }
}
