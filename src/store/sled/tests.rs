//! The bound on a unit, against sled's habit of moving large items into files of their own, which
//! neither its flush nor ours covers.

use std::fs;
use std::path::Path;

use super::{Durability, SledStore, StoreError};
use crate::record::TopicPartition;
use crate::store::contract::unit;
use crate::store::directory::UNIT_BYTES_MAX;
use crate::store::{CommitUnit, Lease, Store as _, format};

fn orders(partition: i32) -> TopicPartition {
    TopicPartition::new("orders", partition)
}

fn open(path: &Path, durability: Durability) -> Result<SledStore, StoreError> {
    SledStore::options().durability(durability).open(path)
}

/// A unit of 1,000 keys with results, just below the bound.
fn largest(lease: &Lease, previous: i64) -> CommitUnit {
    let mut unit = unit(lease, previous, previous + 1000);
    for entry in &mut unit.entries {
        entry.result = Some(vec![0xa5; 85].into());
    }
    let bytes = format::encoded_bytes(&unit);
    let bound = UNIT_BYTES_MAX;
    assert!((bound - 1024..=bound).contains(&bytes), "{bytes} bytes");
    unit
}

fn blobs(path: &Path) -> usize {
    fs::read_dir(path.join("log/blobs")).unwrap().count()
}

#[test]
fn a_unit_above_the_bound_is_refused_before_anything_is_written() {
    let parent = tempfile::tempdir().unwrap();
    let store = open(parent.path(), Durability::Power).unwrap();
    let [short, long] = [0, 1].map(|partition| store.lease(&orders(partition)).unwrap());
    let mut too_long = largest(&long, 0);
    too_long.entries[0].result = Some(vec![0; 2048].into());
    let refused = store.commit(&[unit(&short, 0, 3), too_long]).unwrap_err();
    assert!(matches!(refused, StoreError::Misused(_)), "{refused}");
    assert!(store.heads().iter().all(|(_, head)| head.is_none()));
    // It is no failure to write: what follows is taken.
    store.commit(&[largest(&long, 0)]).unwrap();
}

/// Leaves fill up to 17 records before they split, in every partition.
#[test]
fn the_largest_units_stay_in_the_log() {
    let parent = tempfile::tempdir().unwrap();
    let store = open(parent.path(), Durability::Process).unwrap();
    let leases = [0, 1, 2, 3].map(|partition| store.lease(&orders(partition)).unwrap());
    let mut at = [0; 4];
    let mut records = 0;
    while records < 2000 {
        // Now one partition, now several, so that leaves at partitions' borders fill up too.
        let round = records % 7;
        let some = leases
            .iter()
            .zip(&mut at)
            .skip(round % 4)
            .take(1 + round % 3);
        let units: Vec<_> = some
            .map(|(lease, at)| {
                let unit = largest(lease, *at);
                *at += 1000;
                unit
            })
            .collect();
        store.commit(&units).unwrap();
        records += units.len();
        assert_eq!(blobs(parent.path()), 0, "after {records} records");
    }
    drop(store);
    let store = open(parent.path(), Durability::Process).unwrap();
    assert_eq!(store.summary().keys, records as u64 * 1000);
    assert_eq!(blobs(parent.path()), 0, "after a reopening");
}
