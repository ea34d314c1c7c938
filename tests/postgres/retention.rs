//! What expires, and what does not.

use std::time::Duration;

use idempotent_consumer::key::Fingerprint;
use idempotent_consumer::store::{
    CommitUnit, Entry, Expired, Gap, Gaps, Lease, Owner, Place, PostgresStore, Store,
};
use idempotent_consumer::{NextOffset, TopicPartition};

use crate::shared::{self, Shared};

const HOUR_MS: i64 = 3_600_000;
/// In the past, whatever the clock says.
const BEGAN_MS: i64 = 1_600_000_000_000;

fn store(server: &Shared) -> PostgresStore {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let config = runtime.block_on(server.database());
    let store = PostgresStore::connect(config).unwrap();
    let owner = Owner {
        group: "g".into(),
        recipe: "record-key".into(),
        scope: "topic".into(),
    };
    store.bind(&owner).unwrap();
    store
}

fn lease(store: &PostgresStore, partition: i32) -> Lease {
    store
        .lease(&TopicPartition::new("orders", partition))
        .unwrap()
}

fn key(lease: &Lease, offset: i64) -> Fingerprint {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&offset.to_be_bytes());
    bytes[8..12].copy_from_slice(&lease.id.0.to_be_bytes());
    Fingerprint::new(bytes)
}

fn at(offset: i64) -> NextOffset {
    NextOffset::new(offset).unwrap()
}

/// Ten records of one hour: the hour is the unit's number.
fn hour(lease: &Lease, hour: i64) -> CommitUnit {
    let offsets = hour * 10..(hour + 1) * 10;
    let entries = offsets.clone().map(|offset| Entry {
        fingerprint: key(lease, offset),
        offset,
        value_digest: 0,
        result: None,
        dead_lettered: false,
        forgotten: false,
        restored: false,
    });
    CommitUnit {
        id: lease.id,
        epoch: lease.epoch,
        previous: at(offsets.start),
        next: at(offsets.end),
        max_timestamp_ms: BEGAN_MS + hour * HOUR_MS,
        anchor: None,
        entries: entries.collect(),
        gaps: Gaps::default(),
        outbox: Vec::new(),
    }
}

fn hours(number: i64) -> Duration {
    Duration::from_millis((number * HOUR_MS).unsigned_abs())
}

/// Which of the first offsets have a mark.
fn known(store: &PostgresStore, lease: &Lease, offsets: std::ops::Range<i64>) -> Vec<i64> {
    let keys: Vec<_> = offsets.clone().map(|offset| key(lease, offset)).collect();
    let mut found = Vec::new();
    store.lookup(&keys, &mut found).unwrap();
    let known = offsets.zip(found).filter(|(_, mark)| mark.is_some());
    known.map(|(offset, _)| offset).collect()
}

#[test]
fn what_is_older_than_is_kept_goes_from_the_front_and_nothing_else() {
    let Some(server) = shared::server() else {
        return;
    };
    let store = store(&server);
    let (one, other) = (lease(&store, 0), lease(&store, 1));
    for number in 0..5 {
        store.commit(&[hour(&one, number)]).unwrap();
    }
    store.commit(&[hour(&other, 0)]).unwrap();
    let expired = store.expire(hours(2)).unwrap();
    assert_eq!((expired.keys, expired.units), (20, 2));
    assert_eq!(known(&store, &one, 0..50), (20..50).collect::<Vec<_>>());
    // Measured by its own newest record: the other one is as new as it gets.
    assert_eq!(known(&store, &other, 0..10).len(), 10);
    assert_eq!(store.retained_from(one.id), at(20));
    assert_eq!(store.retained_from(other.id), at(0));
    let (place, unit) = store
        .unit_behind(one.id, Place::default())
        .unwrap()
        .unwrap();
    assert_eq!((place.next, unit.entries.len()), (at(30), 10));
    assert_eq!(store.expire(hours(2)).unwrap(), Expired::default());
    // The work goes on where it was.
    store.commit(&[hour(&one, 5)]).unwrap();
}

#[test]
fn nothing_goes_above_the_lowest_record_that_is_not_done() {
    let Some(server) = shared::server() else {
        return;
    };
    let store = store(&server);
    let lease = lease(&store, 0);
    let mut gaps = Gaps::default();
    gaps.open(Gap {
        from: 15,
        to: 16,
        forgotten: false,
    });
    store.commit(&[hour(&lease, 0)]).unwrap();
    for number in 1..5 {
        let gaps = gaps.clone();
        store
            .commit(&[CommitUnit {
                gaps,
                ..hour(&lease, number)
            }])
            .unwrap();
    }
    assert_eq!(store.expire(hours(1)).unwrap().units, 1);
    assert_eq!(known(&store, &lease, 0..20), (10..20).collect::<Vec<_>>());
    assert_eq!(store.retained_from(lease.id), at(10));
}

#[test]
fn a_key_that_another_unit_has_taken_over_stays() {
    let Some(server) = shared::server() else {
        return;
    };
    let store = store(&server);
    let lease = lease(&store, 0);
    let mut letter = hour(&lease, 0);
    letter.entries[3].dead_lettered = true;
    store.commit(&[letter]).unwrap();
    let mut done = hour(&lease, 1);
    done.entries[0].fingerprint = key(&lease, 3);
    store.commit(&[done]).unwrap();
    let expired = store.expire(hours(0)).unwrap();
    assert_eq!((expired.keys, expired.units), (9, 1));
    assert_eq!(known(&store, &lease, 0..10), [3]);
}

#[test]
fn one_record_from_the_future_takes_nothing_with_it() {
    let Some(server) = shared::server() else {
        return;
    };
    let store = store(&server);
    let lease = lease(&store, 0);
    // As of now, by a clock that may be an hour off.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = i64::try_from(now.unwrap().as_millis()).unwrap();
    let present = hour(&lease, 0);
    store
        .commit(&[CommitUnit {
            max_timestamp_ms: now - HOUR_MS,
            ..present
        }])
        .unwrap();
    let future = hour(&lease, 1);
    store
        .commit(&[CommitUnit {
            max_timestamp_ms: now + 1_000 * HOUR_MS,
            ..future
        }])
        .unwrap();
    assert_eq!(store.expire(hours(3)).unwrap(), Expired::default());
    assert_eq!(known(&store, &lease, 0..20).len(), 20);
}

#[test]
fn records_without_a_time_are_never_old() {
    let Some(server) = shared::server() else {
        return;
    };
    let store = store(&server);
    let lease = lease(&store, 0);
    for number in 0..3 {
        let unit = hour(&lease, number);
        store
            .commit(&[CommitUnit {
                max_timestamp_ms: -1,
                ..unit
            }])
            .unwrap();
    }
    assert_eq!(store.expire(Duration::ZERO).unwrap(), Expired::default());
}
