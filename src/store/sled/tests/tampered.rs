//! Records that were removed, changed or moved inside sled, whose own checks find nothing wrong.

use super::*;

type Records = Vec<(sled::IVec, sled::IVec)>;

/// sled itself, with the store's settings.
pub(super) fn engine(path: &Path) -> sled::Db {
    let config = sled::Config::new()
        .path(Paths::new(path).log)
        .segment_size(log::SEGMENT_BYTES);
    // Its lock is let go of a little after the store was dropped.
    let tries = std::iter::repeat_with(|| config.open());
    let mut tries = tries.inspect(|_| std::thread::yield_now());
    tries.find_map(Result::ok).unwrap()
}

/// Tampers with a good store of two partitions with five records each (0 to 4 and 5 to 9) and
/// expects a refusal that says `what`, now and at the next try.
fn refused_after(durabilities: &[Durability], tamper: impl Fn(&sled::Db, &Records), what: &str) {
    for durability in durabilities {
        let parent = tempfile::tempdir().unwrap();
        fill(parent.path(), *durability, (2, 5, 9), true);
        let db = engine(parent.path());
        let records: Records = db.iter().map(Result::unwrap).collect();
        assert_eq!(records.len(), 10);
        tamper(&db, &records);
        db.flush().unwrap();
        drop(db);
        for _ in 0..2 {
            let text = refusal(parent.path(), *durability).to_string();
            assert!(text.contains(what), "{text}");
            assert!(text.contains("Put a copy"), "{text}");
        }
    }
}

/// A unit as a partition's first record.
fn first(unit: CommitUnit) -> format::Logged {
    format::Logged {
        place: Place {
            next: unit.next,
            step: 0,
        },
        previous_step: 0,
        unit,
    }
}

const ALL: &[Durability] = &[Durability::Power, Durability::Process, Durability::None];

#[test]
fn the_harness_itself_leaves_a_store_whole() {
    let parent = tempfile::tempdir().unwrap();
    let acknowledged = fill(parent.path(), Durability::Power, (2, 5, 9), true);
    engine(parent.path()).flush().unwrap();
    let store = open(parent.path(), Durability::Power).unwrap();
    acknowledged.missing_in(&store).unwrap();
}

#[test]
fn a_record_removed_from_the_middle() {
    let remove = |db: &sled::Db, records: &Records| drop(db.remove(&records[2].0).unwrap());
    refused_after(ALL, remove, "orders[0] has a hole");
}

#[test]
fn the_first_record_of_a_partition_removed() {
    for first in [0, 5] {
        let remove = |db: &sled::Db, records: &Records| drop(db.remove(&records[first].0).unwrap());
        refused_after(ALL, remove, "has a hole");
    }
}

#[test]
fn the_last_record_of_a_partition_removed() {
    for last in [4, 9] {
        let remove = |db: &sled::Db, records: &Records| drop(db.remove(&records[last].0).unwrap());
        refused_after(ALL, remove, "had been acknowledged up to");
    }
}

#[test]
fn every_record_of_a_partition_removed() {
    let remove = |db: &sled::Db, records: &Records| {
        records[..5]
            .iter()
            .for_each(|(key, _)| drop(db.remove(key)));
    };
    refused_after(ALL, remove, "ends at offset 0");
    refused_after(ALL, |db, _| db.clear().unwrap(), "ends at offset 0");
}

#[test]
fn a_record_with_a_changed_byte() {
    let change = |db: &sled::Db, records: &Records| {
        let (key, value) = &records[7];
        let mut value = value.to_vec();
        value[80] ^= 0x10;
        drop(db.insert(key, value).unwrap());
    };
    refused_after(ALL, change, "checksum does not match");
}

#[test]
fn a_record_under_another_key() {
    let shift = |db: &sled::Db, records: &Records| {
        drop(db.insert(&records[2].0, &records[3].1).unwrap());
    };
    refused_after(ALL, shift, "checksum does not match");
    let swap_partitions = |db: &sled::Db, records: &Records| {
        drop(db.insert(&records[0].0, &records[5].1).unwrap());
    };
    refused_after(ALL, swap_partitions, "checksum does not match");
}

#[test]
fn a_record_of_an_unknown_partition_or_of_none() {
    let unknown = |db: &sled::Db, _: &Records| {
        let lease = Lease {
            id: PartitionId(2),
            epoch: 1,
            head: None,
            in_doubt: false,
        };
        let unit = unit(&lease, 0, 3);
        let logged = first(unit);
        let key = format::log_key(PartitionId(2), logged.place);
        drop(db.insert(key, format::encode(&logged)).unwrap());
    };
    refused_after(ALL, unknown, "partition number 2, which has no name");
    let none = |db: &sled::Db, _: &Records| drop(db.insert("zzz", "zzz").unwrap());
    refused_after(ALL, none, "a key that is none of the log's");
}

/// Without a release nothing outside the log knew of a store under `Process`. The next opening
/// must have told.
#[test]
fn a_record_removed_after_an_opening_that_found_it() {
    let parent = tempfile::tempdir().unwrap();
    fill(parent.path(), Durability::Process, (1, 5, 9), false);
    drop(open(parent.path(), Durability::Process).unwrap());
    let db = engine(parent.path());
    let last = db.iter().last().unwrap().unwrap().0;
    db.remove(last).unwrap();
    db.flush().unwrap();
    drop(db);
    let text = refusal(parent.path(), Durability::Process).to_string();
    assert!(text.contains("had been acknowledged up to"), "{text}");
}

#[test]
fn a_result_that_cannot_be_read_is_an_error_and_ends_the_writing() {
    let parent = tempfile::tempdir().unwrap();
    let store = open(parent.path(), Durability::Power).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    let good = unit(&lease, 0, 4);
    store.commit(std::slice::from_ref(&good)).unwrap();
    let key = format::log_key(good.id, first(good.clone()).place);
    let state = store.state();
    state.log.insert(key.as_ref(), vec![0; 100]).unwrap();
    drop(state);
    let mut found = Vec::new();
    store
        .lookup(&[good.entries[0].fingerprint], &mut found)
        .unwrap();
    let error = store.result(&good.entries[0].fingerprint, &found[0].unwrap());
    assert!(
        matches!(error, Err(StoreError::Damaged { .. })),
        "{error:?}"
    );
    let error = store.commit(&[unit(&lease, 4, 5)]).unwrap_err();
    assert!(matches!(error, StoreError::Poisoned { .. }), "{error}");
}

#[test]
fn a_mark_of_another_store_has_no_result_here_and_says_so() {
    let parent = tempfile::tempdir().unwrap();
    let store = open(parent.path(), Durability::Power).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    let good = unit(&lease, 0, 4);
    store.commit(std::slice::from_ref(&good)).unwrap();
    let foreign = Mark {
        id: lease.id,
        offset: 9,
        value_digest: 0,
        has_result: true,
        dead_lettered: false,
        forgotten: false,
        restored: false,
    };
    let answer = store.result(&good.entries[0].fingerprint, &foreign);
    assert!(matches!(answer, Err(StoreError::Misused(_))), "{answer:?}");
}
