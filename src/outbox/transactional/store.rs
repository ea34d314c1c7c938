//! The store's face: all but the commit is the inner store's.

use super::sender::Part;
use super::{Link, Transactional};
use crate::key::{Fingerprint, HashKey};
use crate::outbox::round::Ended;
use crate::record::TopicPartition;
use crate::store::{
    Claims, CommitUnit, Gaps, Head, Lease, Mark, Owner, PartitionId, Place, Store, StoreError,
    Summary,
};

impl<S: Store> Transactional<S> {
    /// One transaction for all units, then nothing but the marks is left to do.
    fn send(&self, units: &[CommitUnit]) -> Result<(), StoreError> {
        let mut parts = Vec::with_capacity(units.len());
        let mut link = self.link();
        let sent = std::mem::take(&mut *self.unmarked());
        let names = self.names();
        for unit in units.iter().filter(|unit| !sent.contains(&unit.id)) {
            let name = names.get(&unit.id).ok_or(StoreError::Misused(
                "a commit for a partition that was not leased",
            ))?;
            parts.push(Part {
                id: unit.id,
                epoch: unit.epoch,
                name: name.clone(),
                next: unit.position(),
                records: &unit.outbox,
            });
        }
        drop(names);
        let sender = match &mut *link {
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

    fn lease(&self, partition: &TopicPartition) -> Result<Lease, StoreError> {
        let lease = self.inner.lease(partition)?;
        self.names().insert(lease.id, partition.clone());
        if let Link::Up(sender) = &mut *self.link() {
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

    fn result(&self, key: &Fingerprint, mark: &Mark) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.result(key, mark)
    }

    fn commit(&self, units: &[CommitUnit]) -> Result<(), StoreError> {
        // In this order: what is marked and not sent would be lost, and what is sent and not marked
        // is found in the topic again.
        self.send(units)?;
        let marked = self.inner.commit(units);
        match &marked {
            Ok(()) => {}
            // It comes again without the one that is late, and what was sent must not be.
            Err(StoreError::Fenced { .. }) => {
                self.unmarked().extend(units.iter().map(|unit| unit.id));
            }
            Err(error) => self.link().break_off(error.to_string()),
        }
        marked
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
