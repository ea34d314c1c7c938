use std::sync::Arc;

use super::*;
use crate::engine::{Engine, Look};
use crate::key::Scope;
use crate::store::MemoryStore;

/// Answers with nothing that a store answers by default, and finds every commit late.
#[derive(Default)]
struct Odd(MemoryStore);

impl Store for Odd {
    fn retained_from(&self, _: PartitionId) -> NextOffset {
        NextOffset::after(6)
    }

    fn restore_until(&self, _: PartitionId) -> NextOffset {
        NextOffset::after(7)
    }

    fn restores(&self, _: &Lease, _: NextOffset) -> Result<(), StoreError> {
        Err(StoreError::Misused("odd"))
    }

    fn result(&self, _: &Fingerprint, _: &Mark) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(Some(b"odd".to_vec()))
    }

    fn id(&self) -> Option<String> {
        Some("odd".to_owned())
    }

    fn effects_in_commit(&self) -> bool {
        true
    }

    fn commit(&self, units: &[CommitUnit]) -> Result<(), StoreError> {
        Err(StoreError::FencedUnmarked {
            partition: partition(),
            ours: units[0].epoch,
            newest: units[0].epoch + 1,
        })
    }

    fn bind(&self, owner: &Owner) -> Result<HashKey, StoreError> {
        self.0.bind(owner)
    }

    fn bind_cluster(&self, cluster_id: &str) -> Result<(), StoreError> {
        self.0.bind_cluster(cluster_id)
    }

    fn lease(&self, partition: &TopicPartition) -> Result<Lease, StoreError> {
        self.0.lease(partition)
    }

    fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.0.release(lease)
    }

    fn lookup(
        &self,
        keys: &[Fingerprint],
        found: &mut Vec<Option<Mark>>,
    ) -> Result<(), StoreError> {
        self.0.lookup(keys, found)
    }

    fn unit_behind(
        &self,
        id: PartitionId,
        place: Place,
    ) -> Result<Option<(Place, CommitUnit)>, StoreError> {
        self.0.unit_behind(id, place)
    }

    fn gaps(&self, id: PartitionId) -> Gaps {
        self.0.gaps(id)
    }

    fn claims(&self) -> &Claims {
        self.0.claims()
    }

    fn heads(&self) -> Vec<(TopicPartition, Option<Head>)> {
        self.0.heads()
    }

    fn summary(&self) -> Summary {
        self.0.summary()
    }
}

fn partition() -> TopicPartition {
    TopicPartition::new("in", 0)
}

fn owner() -> Owner {
    Owner {
        group: "group".into(),
        recipe: "line".into(),
        scope: "topic".into(),
    }
}

#[test]
fn what_a_store_answers_otherwise_than_by_default_is_asked_through_others_around_it() {
    let answers = |store: &dyn Store| {
        let key = Fingerprint::new([7; 16]);
        let mark = Mark::first_seen(PartitionId(0), 0, 0);
        let result = store.result(&key, &mark).unwrap();
        let lease = store.lease(&partition()).unwrap();
        let restores = store.restores(&lease, NextOffset::ZERO).is_ok();
        let (from, until) = (store.retained_from(lease.id), store.restore_until(lease.id));
        let own = (store.id(), store.effects_in_commit());
        (result, from, until, restores, own)
    };
    let odd = answers(&Odd::default());
    assert_eq!(answers(&Arc::new(Odd::default())), odd);
    assert_eq!(answers(&Transactional::over(Odd::default())), odd);
}

#[test]
fn a_unit_of_an_older_lease_is_refused_before_anything_is_sent() {
    let store = Transactional::over(MemoryStore::new());
    store.bind(&owner()).unwrap();
    let old = store.lease(&partition()).unwrap();
    store.lease(&partition()).unwrap();
    let next = NextOffset::after(0);
    let unit = CommitUnit {
        id: old.id,
        epoch: old.epoch,
        previous: NextOffset::ZERO,
        next,
        max_timestamp_ms: 0,
        anchor: None,
        entries: Vec::new(),
        gaps: Gaps::default(),
        outbox: Vec::new(),
    };
    // There is no producer, so that an attempt to send would be refused with another word.
    let refused = store.commit(&[unit]);
    assert!(
        matches!(refused, Err(StoreError::Fenced { ours, newest, .. })
        if (ours, newest) == (old.epoch, old.epoch + 1))
    );
}

#[test]
fn what_was_sent_and_is_late_for_its_mark_is_not_handled_again_for_a_copy() {
    let engine = Engine::new(Arc::new(Odd::default()), &owner(), Scope::Topic).unwrap();
    let mut ledger = engine.lease(&partition()).unwrap();
    let other = engine.lease(&TopicPartition::new("in", 1)).unwrap();
    let record = ledger.candidate(0, b"key", None);
    assert_eq!(ledger.look(&record).unwrap(), Look::New);
    ledger.done(&record, None).unwrap();
    engine.commit().unwrap();
    drop(ledger);
    let copy = other.candidate(0, b"key", None);
    assert_eq!(other.look(&copy).unwrap(), Look::Busy);
}
