//! A store whose keys are mostly sealed.

use super::*;
use crate::store::{Expired, Expiry, Forget, Retaining as _};

fn settle(store: &Kept) {
    while !store.index.is_settled() {
        std::thread::yield_now();
    }
}

fn runs(path: &Path) -> usize {
    let files = fs::read_dir(path.join("index"));
    let names = files.map(|files| files.map(|file| file.unwrap().file_name()));
    let is_run = |name: &std::ffi::OsString| name.to_string_lossy().ends_with(".run");
    names.map_or(0, |names| names.filter(is_run).count())
}

/// Goes on with a store: `rounds` commits of two partitions.
fn work(store: &Kept, acknowledged: &mut Acknowledged, rounds: i64) -> [Lease; 2] {
    let leases = [0, 1].map(|partition| store.lease(&orders(partition)).unwrap());
    let mut at = leases.map(|lease| lease.head.map_or(0, |head| head.next.get()));
    for round in 0..rounds {
        let units = leases.iter().zip(&mut at).map(|(lease, at)| {
            let previous = *at;
            *at += 1 + round % 13;
            unit(lease, previous, *at)
        });
        acknowledged.commit(store, units.collect());
    }
    leases
}

#[test]
fn what_is_sealed_is_known_after_any_end() {
    for &durability in DURABILITIES {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("store");
        let killed = parent.path().join("killed");
        let mut acknowledged = Acknowledged::default();
        for round in 0..4 {
            let store = open_small(&path, durability).unwrap();
            acknowledged.missing_in(&store).unwrap();
            let leases = work(&store, &mut acknowledged, 60);
            acknowledged.missing_in(&store).unwrap();
            for lease in &leases {
                store.release(lease).unwrap();
            }
            settle(&store);
            assert!(runs(&path) > 0);
            // As a death of the process leaves it, some of it sealed.
            remove_if_there(&killed);
            copy(&path, &killed);
            let after = open_small(&killed, durability).unwrap();
            acknowledged.missing_in(&after).unwrap();
            assert_eq!(after.summary().keys, store.summary().keys);
            work(&after, &mut Acknowledged::default(), 5);
            drop(after);
            if round == 2 {
                fs::remove_file(path.join("index/manifest")).unwrap();
            }
        }
        // And as every version before read it.
        let whole = open(&path, durability).unwrap();
        acknowledged.missing_in(&whole).unwrap();
    }
}

/// Each sealing waits for the device; the commits, where the engine can, do not.
#[test]
fn keys_that_are_not_sealed_yet_are_bounded_however_fast_they_come() {
    for &durability in DURABILITIES {
        let parent = tempfile::tempdir().unwrap();
        let store = open_small(parent.path(), durability).unwrap();
        let lease = store.lease(&orders(0)).unwrap();
        for at in (0..8_000).step_by(40) {
            store.commit(&[unit(&lease, at, at + 40)]).unwrap();
            let keys = store.index.unsealed();
            assert!(keys <= 4 * 50 + 40, "{keys} in memory at offset {at}");
        }
    }
}

fn remove_if_there(path: &Path) {
    if path.exists() {
        remove(path);
    }
}

#[test]
fn after_a_release_and_a_close_no_record_is_read_into_memory() {
    let parent = tempfile::tempdir().unwrap();
    let mut acknowledged = Acknowledged::default();
    let store = open_small(parent.path(), Durability::Power).unwrap();
    work(&store, &mut acknowledged, 100);
    drop(store);
    let db = Raw::open(parent.path());
    // One that would be refused where it was read.
    let (key, _) = db.records().swap_remove(30);
    db.insert(&key, b"damaged");
    db.close();
    let store = open_small(parent.path(), Durability::Power).unwrap();
    let error = acknowledged.missing_in(&store).unwrap_err();
    assert!(
        error.contains("result") || error.contains("damaged"),
        "{error}"
    );
    // The keys are known all the same.
    let keys = acknowledged.0.iter().flat_map(|unit| &unit.entries);
    let keys: Vec<_> = keys.map(|entry| entry.fingerprint).collect();
    let mut found = Vec::new();
    store.lookup(&keys, &mut found).unwrap();
    assert!(found.iter().all(Option::is_some));
}

#[test]
fn a_log_that_ends_below_what_is_sealed_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let store = open_small(parent.path(), Durability::Power).unwrap();
    work(&store, &mut Acknowledged::default(), 100);
    drop(store);
    let db = Raw::open(parent.path());
    db.remove(&db.records().last().unwrap().0);
    db.close();
    let text = refusal(parent.path(), Durability::Power).to_string();
    assert!(
        text.contains("acknowledged and sealed up to there"),
        "{text}"
    );
}

#[test]
fn what_is_forgotten_is_not_known_from_a_run() {
    let parent = tempfile::tempdir().unwrap();
    let mut acknowledged = Acknowledged::default();
    let store = open_small(parent.path(), Durability::Power).unwrap();
    store.bind(&owner()).unwrap();
    work(&store, &mut acknowledged, 100);
    settle(&store);
    store.forget(&Forget::offsets(&orders(0), 7..200)).unwrap();
    let store = open_small(parent.path(), Durability::Power).unwrap();
    settle(&store);
    for entry in acknowledged.0.iter().flat_map(|unit| &unit.entries) {
        let mut found = Vec::new();
        store.lookup(&[entry.fingerprint], &mut found).unwrap();
        let mark = found[0].unwrap();
        let forgotten = mark.id == PartitionId(0) && (7..200).contains(&mark.offset);
        assert_eq!(mark.forgotten, forgotten, "{mark:?}");
    }
}

#[test]
fn what_has_expired_is_not_known_from_a_run_and_is_counted_right_after_a_reopening() {
    let parent = tempfile::tempdir().unwrap();
    let mut acknowledged = Acknowledged::default();
    let mut store = open_small(parent.path(), Durability::Power).unwrap();
    work(&store, &mut acknowledged, 200);
    let halves = [1, 2].map(|of| {
        let heads = store.heads();
        heads[0].1.unwrap().next.get() * of / 2
    });
    for below in halves {
        let below = crate::record::NextOffset::new(below).unwrap();
        let expiry = Expiry {
            id: PartitionId(0),
            older_than_ms: i64::MAX,
            below,
            entries: u64::MAX,
            bytes: u64::MAX,
        };
        while store.expire(&expiry).unwrap() != Expired::default() {}
        for _ in 0..2 {
            settle(&store);
            let front = store.retained_from(PartitionId(0)).get();
            assert!(front > 0 && front <= below.get());
            for entry in acknowledged.0.iter().flat_map(|unit| {
                let id = unit.id;
                unit.entries.iter().map(move |entry| (id, entry))
            }) {
                let (id, entry) = entry;
                let mut found = Vec::new();
                store.lookup(&[entry.fingerprint], &mut found).unwrap();
                let held = id != PartitionId(0) || entry.offset >= front;
                assert_eq!(found[0].is_some(), held, "{id:?} {entry:?}, front {front}");
            }
            let usage = store.usage();
            drop(store);
            store = open_small(parent.path(), Durability::Power).unwrap();
            assert_eq!(store.usage(), usage);
        }
    }
}

#[test]
fn a_store_opens_when_all_that_is_sealed_has_expired_and_the_process_dies() {
    for &durability in DURABILITIES {
        let parent = tempfile::tempdir().unwrap();
        let [path, killed] = ["store", "killed"].map(|name| parent.path().join(name));
        let store = open_small(&path, durability).unwrap();
        let lease = store.lease(&orders(0)).unwrap();
        store.commit(&[unit(&lease, 0, 60)]).unwrap();
        settle(&store);
        assert_eq!(runs(&path), 1);
        store.commit(&[unit(&lease, 60, 70)]).unwrap();
        super::again::expire_below(&store, 60);
        assert_eq!(store.retained_from(PartitionId(0)).get(), 60);
        settle(&store);
        copy(&path, &killed);
        let usage = store.usage();
        let killed = open_small(&killed, durability).unwrap();
        assert_eq!(killed.usage(), usage);
        assert_eq!(killed.heads(), store.heads());
    }
}

#[test]
fn an_index_of_another_log_is_made_anew() {
    let parent = tempfile::tempdir().unwrap();
    let mut acknowledged = Acknowledged::default();
    let store = open_small(parent.path(), Durability::Power).unwrap();
    work(&store, &mut acknowledged, 100);
    drop(store);
    let manifest = parent.path().join("index/manifest");
    let sound = fs::read_to_string(&manifest).unwrap();
    let swaps = [
        ("\"number\":1,\"next\"", "\"number\":9,\"next\""),
        ("\"gaps\":[]", "\"gaps\":[[1,2,false]]"),
    ];
    for (of, by) in swaps {
        let json = sound.rsplit_once("\nchecksum ").unwrap().0;
        let json = json.replacen(of, by, 1);
        let sum = crc32fast::hash(json.as_bytes());
        let other = format!("{json}\nchecksum {sum:08x}\n");
        assert_ne!(other, sound);
        fs::write(&manifest, other).unwrap();
        let store = open_small(parent.path(), Durability::Power).unwrap();
        acknowledged.missing_in(&store).unwrap();
        drop(store);
        assert!(runs(parent.path()) > 0, "it is sealed again");
        acknowledged
            .missing_in(&open(parent.path(), Durability::Power).unwrap())
            .unwrap();
    }
}
