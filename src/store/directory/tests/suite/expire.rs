//! What lies on disk while records expire, and after a crash in the middle of it.

use std::sync::Arc;

use super::*;
use crate::retention::{AtCap, Retention, Sweeper};

const CLOCK_MS: i64 = 1_700_000_000_000;

/// Everything but the last unit of each partition, and what is behind `below`.
fn expire(store: Kept, below: Option<i64>) -> Kept {
    let store = Arc::new(store);
    let retention = Retention::max_entries(1).at_cap(AtCap::ShrinkWindow);
    let mut sweeper = Sweeper::new(Arc::clone(&store) as _, retention).unwrap();
    let below = below.and_then(crate::record::NextOffset::new);
    let limit = |one: &crate::store::Retained| below.unwrap_or(one.position);
    sweeper.sweep_below(&limit, &mut || true).unwrap();
    drop(sweeper);
    Arc::into_inner(store).unwrap()
}

fn fronts(store: &Kept) -> Vec<i64> {
    let list = store.inspect().partitions;
    list.iter().map(|one| one.floor.unwrap().get()).collect()
}

fn held(path: &Path) -> usize {
    let raw = Raw::open(path);
    let records = raw.records().len();
    raw.close();
    records
}

#[test]
fn what_has_expired_is_gone_after_a_restart_and_all_else_is_there() {
    for durability in DURABILITIES {
        let parent = tempfile::tempdir().unwrap();
        let mut acknowledged = fill(parent.path(), *durability, (2, 9, 30), false);
        let store = open(parent.path(), *durability).unwrap();
        let usage = store.retaining().unwrap().usage();
        let store = expire(store, None);
        let left = store.retaining().unwrap().usage();
        assert!(left.entries < usage.entries && left.bytes < usage.bytes);
        let front = fronts(&store);
        drop(store);
        assert_eq!(held(parent.path()), 2);
        let store = open(parent.path(), *durability).unwrap();
        assert_eq!(
            (store.retaining().unwrap().usage(), fronts(&store)),
            (left, front)
        );
        let last = acknowledged.0.split_off(acknowledged.0.len() - 2);
        Acknowledged(last).missing_in(&store).unwrap();
        assert_eq!(store.summary().keys, left.entries);
        // And the work goes on.
        let lease = store.lease(&orders(0)).unwrap();
        let next = lease.head.unwrap().next.get();
        store.commit(&[unit(&lease, next, next + 2)]).unwrap();
        drop(store);
        open(parent.path(), *durability).unwrap();
    }
}

/// Both files as they were at some moment: the log, and what stands outside of it.
fn at_once(path: &Path, log: &Path, high_water: &Path) {
    for name in ["log", "log.redb"] {
        if path.join(name).exists() {
            remove(&path.join(name));
        }
        if log.join(name).is_dir() {
            copy(&log.join(name), &path.join(name));
        } else if log.join(name).exists() {
            fs::copy(log.join(name), path.join(name)).unwrap();
        }
    }
    fs::copy(high_water.join("high-water"), path.join("high-water")).unwrap();
}

#[test]
fn a_crash_between_the_floor_and_the_removal_leaves_a_store_that_opens_and_removes() {
    let parent = tempfile::tempdir().unwrap();
    let [path, before, after] = ["seen", "before", "after"].map(|name| parent.path().join(name));
    let acknowledged = fill(&path, Durability::Power, (2, 9, 30), true);
    copy(&path, &before);
    let store = expire(open(&path, Durability::Power).unwrap(), Some(60));
    let (front, usage) = (fronts(&store), store.retaining().unwrap().usage());
    assert!(front.iter().all(|at| (20..=60).contains(at)), "{front:?}");
    drop(store);
    let left = held(&path);
    copy(&path, &after);
    // The floor is raised, and every record is still there.
    at_once(&path, &before, &after);
    assert_eq!(held(&path), acknowledged.0.len());
    for _ in 0..2 {
        let store = open(&path, Durability::Power).unwrap();
        assert_eq!(
            (fronts(&store), store.retaining().unwrap().usage()),
            (front.clone(), usage)
        );
        assert_eq!(store.summary().keys, usage.entries);
        drop(store);
        assert_eq!(held(&path), left);
    }
    // The other way round records are missing, and nobody knows why.
    at_once(&path, &after, &before);
    let text = refusal(&path, Durability::Power).to_string();
    assert!(text.contains("has a hole"), "{text}");
}

#[test]
fn a_record_missing_at_a_raised_floor_is_missed() {
    let parent = tempfile::tempdir().unwrap();
    fill(parent.path(), Durability::Power, (1, 9, 30), true);
    let store = expire(open(parent.path(), Durability::Power).unwrap(), Some(60));
    drop(store);
    let raw = Raw::open(parent.path());
    raw.remove(&raw.records()[0].0);
    raw.close();
    let text = refusal(parent.path(), Durability::Power).to_string();
    assert!(text.contains("has a hole"), "{text}");
}

#[test]
fn forgetting_and_the_log_know_of_nothing_below_the_front() {
    let parent = tempfile::tempdir().unwrap();
    fill(parent.path(), Durability::Power, (1, 9, 30), true);
    let store = expire(open(parent.path(), Durability::Power).unwrap(), Some(60));
    let front = fronts(&store)[0];
    let first = store.unit_behind(PartitionId(0), Place::default()).unwrap();
    assert_eq!(first.unwrap().1.previous.get(), front);
    let all = crate::store::Forget::partition(&orders(0));
    let forgotten = store.plan_forget(&all).unwrap();
    assert_eq!(forgotten.partitions[0].position.get(), front);
    assert_eq!(forgotten.keys(), store.summary().keys);
}

/// Bytes that a directory takes on the device.
fn taken(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let files = fs::read_dir(directory).unwrap();
    let sizes = files.map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            taken(&path)
        } else {
            fs::metadata(&path).unwrap().blocks() * 512
        }
    });
    sizes.sum()
}

// C069, C082
#[test]
fn twenty_rounds_of_filling_and_expiring_take_no_more_disk_than_a_few() {
    const KEYS: i64 = 40_000;
    const UNIT: i64 = 500;
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("seen");
    let mut store = open(&path, Durability::Process).unwrap();
    store.bind(&owner()).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    let (mut at, mut sizes) = (0, Vec::new());
    for _ in 0..20 {
        for _ in 0..KEYS / UNIT {
            let next = at + UNIT;
            let unit = unit(&lease, at, next);
            let max_timestamp_ms = CLOCK_MS + next;
            store
                .commit(&[CommitUnit {
                    max_timestamp_ms,
                    ..unit
                }])
                .unwrap();
            at = next;
        }
        store = expire(store, None);
        assert_eq!(store.summary().keys, UNIT.unsigned_abs());
        sizes.push(taken(&path) >> 10);
    }
    println!("KiB taken after each round of {KEYS} keys: {sizes:?}");
    // sled gives whole segments of 8 MiB back, and needs some to choose from.
    let settled = *sizes[..10].iter().max().unwrap();
    let most = *sizes[10..].iter().max().unwrap();
    assert!(most <= settled * 5 / 4, "{sizes:?}");
}
