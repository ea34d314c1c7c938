//! A store that several hold.

use std::sync::Arc;

use super::{
    Claims, CommitUnit, Gaps, Head, Lease, Mark, Owner, PartitionId, Place, Retaining, Store,
    StoreError, Summary,
};
use crate::key::{Fingerprint, HashKey};
use crate::record::{NextOffset, TopicPartition};

impl<S: Store + ?Sized> Store for Arc<S> {
    fn bind(&self, owner: &Owner) -> Result<HashKey, StoreError> {
        (**self).bind(owner)
    }

    fn bind_cluster(&self, cluster_id: &str) -> Result<(), StoreError> {
        (**self).bind_cluster(cluster_id)
    }

    fn lease(&self, partition: &TopicPartition) -> Result<Lease, StoreError> {
        (**self).lease(partition)
    }

    fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        (**self).release(lease)
    }

    fn lookup(
        &self,
        keys: &[Fingerprint],
        found: &mut Vec<Option<Mark>>,
    ) -> Result<(), StoreError> {
        (**self).lookup(keys, found)
    }

    fn unit_behind(
        &self,
        id: PartitionId,
        place: Place,
    ) -> Result<Option<(Place, CommitUnit)>, StoreError> {
        (**self).unit_behind(id, place)
    }

    fn gaps(&self, id: PartitionId) -> Gaps {
        (**self).gaps(id)
    }

    fn retained_from(&self, id: PartitionId) -> NextOffset {
        (**self).retained_from(id)
    }

    fn retaining(&self) -> Option<&dyn Retaining> {
        (**self).retaining()
    }

    fn restore_until(&self, id: PartitionId) -> NextOffset {
        (**self).restore_until(id)
    }

    fn restores(&self, lease: &Lease, until: NextOffset) -> Result<(), StoreError> {
        (**self).restores(lease, until)
    }

    fn result(&self, key: &Fingerprint, mark: &Mark) -> Result<Option<Vec<u8>>, StoreError> {
        (**self).result(key, mark)
    }

    fn journal(&self, unit: &CommitUnit) -> bool {
        (**self).journal(unit)
    }

    fn may_lack_kept(&self, id: PartitionId) -> bool {
        (**self).may_lack_kept(id)
    }

    fn commit(&self, units: &[CommitUnit]) -> Result<(), StoreError> {
        (**self).commit(units)
    }

    fn claims(&self) -> &Claims {
        (**self).claims()
    }

    fn heads(&self) -> Vec<(TopicPartition, Option<Head>)> {
        (**self).heads()
    }

    fn summary(&self) -> Summary {
        (**self).summary()
    }

    fn id(&self) -> Option<String> {
        (**self).id()
    }

    fn effects_in_commit(&self) -> bool {
        (**self).effects_in_commit()
    }
}
