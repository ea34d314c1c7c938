//! The store's face: all but the commit is the inner store's.

use super::sender::Part;
use super::{Link, Transactional};
use crate::key::{Fingerprint, HashKey};
use crate::outbox::round::Ended;
use crate::record::{NextOffset, TopicPartition};
use crate::store::{
    Claims, CommitUnit, Gaps, Head, Lease, Mark, Owner, PartitionId, Place, Retaining, Store,
    StoreError, Summary,
};

impl<S: Store> Transactional<S> {
    /// One transaction for all units, then nothing but the marks is left to do.
    fn send(&self, link: &mut Link, units: &[CommitUnit]) -> Result<(), StoreError> {
        let mut parts = Vec::with_capacity(units.len());
        let sent = self.unmarked();
        let leased = self.leased();
        for unit in units {
            let (name, epoch) = leased.get(&unit.id).ok_or(StoreError::Misused(
                "a commit for a partition that was not leased",
            ))?;
            // Before anything is sent: the store underneath would find it too late.
            if unit.epoch != *epoch {
                return Err(StoreError::Fenced {
                    partition: name.clone(),
                    ours: unit.epoch,
                    newest: *epoch,
                });
            }
            if sent.contains(&(unit.id, unit.epoch)) {
                continue;
            }
            parts.push(Part {
                id: unit.id,
                epoch: unit.epoch,
                name: name.clone(),
                next: unit.position(),
                records: &unit.outbox,
            });
        }
        drop((leased, sent));
        let sender = match link {
            Link::Up(sender) => sender,
            Link::Down => {
                return Err(StoreError::Misused(
                    "a transactional store commits for a consumer that runs, and for nobody else",
                ));
            }
            Link::Broken {
                transactional_id,
                cause,
            } => {
                return Err(StoreError::Poisoned {
                    place: format!("the transactional producer {transactional_id:?}"),
                    cause: cause.clone(),
                });
            }
        };
        match sender.commit(&parts, &self.closing, self.choices.patience) {
            Ok(Ended::Committed) => Ok(()),
            Ok(Ended::NotOurs(place)) => {
                let part = &parts[place];
                tracing::warn!(
                    partition = %part.name, records = part.records.len(),
                    "the partition was taken away before its answers were sent: others send them"
                );
                Err(StoreError::Fenced {
                    partition: part.name.clone(),
                    ours: part.epoch,
                    newest: part.epoch.saturating_add(1),
                })
            }
            Err(error) => {
                link.break_off(error.to_string());
                Err(error.into())
            }
        }
    }
}

impl<S: Store> Store for Transactional<S> {
    fn bind(&self, owner: &Owner) -> Result<HashKey, StoreError> {
        self.inner.bind(owner)
    }

    fn bind_cluster(&self, cluster_id: &str) -> Result<(), StoreError> {
        self.inner.bind_cluster(cluster_id)
    }

    /// Always: nothing is kept before its transaction, and the run before may have been allowed the
    /// highest [`uncommitted_records_max`](crate::Builder::uncommitted_records_max).
    fn may_lack_kept(&self, _id: PartitionId) -> bool {
        true
    }

    fn lease(&self, partition: &TopicPartition) -> Result<Lease, StoreError> {
        // Not while a commit is between its transaction and its marks: that would fence what is sent.
        let mut link = self.link();
        let lease = self.inner.lease(partition)?;
        let epoch = lease.epoch;
        self.leased().insert(lease.id, (partition.clone(), epoch));
        self.unmarked().retain(|(id, _)| *id != lease.id);
        if let Link::Up(sender) = &mut *link {
            sender.forget(lease.id);
        }
        Ok(lease)
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

    fn retained_from(&self, id: PartitionId) -> NextOffset {
        self.inner.retained_from(id)
    }

    fn retaining(&self) -> Option<&dyn Retaining> {
        self.inner.retaining()
    }

    fn restore_until(&self, id: PartitionId) -> NextOffset {
        self.inner.restore_until(id)
    }

    fn restores(&self, lease: &Lease, until: NextOffset) -> Result<(), StoreError> {
        self.inner.restores(lease, until)
    }

    fn result(&self, key: &Fingerprint, mark: &Mark) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.result(key, mark)
    }

    fn commit(&self, units: &[CommitUnit]) -> Result<(), StoreError> {
        // In this order: what is marked and not sent would be lost, and what is sent and not marked
        // is found in the topic again.
        let mut link = self.link();
        self.send(&mut link, units)?;
        match self.inner.commit(units) {
            // Somebody leased it from the store underneath. The others come again without the one
            // that is late, and what was sent must not be.
            Err(StoreError::Fenced {
                partition,
                ours,
                newest,
            }) => {
                let sent = units.iter().map(|unit| (unit.id, unit.epoch));
                self.unmarked().extend(sent);
                Err(StoreError::FencedUnmarked {
                    partition,
                    ours,
                    newest,
                })
            }
            Err(error) => {
                link.break_off(error.to_string());
                Err(error)
            }
            Ok(()) => {
                let marked = |id| units.iter().any(|unit| unit.id == id);
                self.unmarked().retain(|(id, _)| !marked(*id));
                Ok(())
            }
        }
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
        true
    }
}

#[cfg(test)]
mod tests;
