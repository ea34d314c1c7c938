//! Records that were removed, changed or moved inside the engine, whose own checks find nothing
//! wrong.

use super::*;

/// Tampers with a good store of two partitions with five records each (0 to 4 and 5 to 9) and
/// expects a refusal that says `what`, now and at the next try.
fn refused_after(tamper: impl Fn(&Raw, &Records), what: &str) {
    for durability in DURABILITIES {
        let parent = tempfile::tempdir().unwrap();
        fill(parent.path(), *durability, (2, 5, 9), true);
        let db = Raw::open(parent.path());
        let records = db.records();
        assert_eq!(records.len(), 10);
        tamper(&db, &records);
        db.close();
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
        tail: None,
    }
}

#[test]
fn the_harness_itself_leaves_a_store_whole() {
    let parent = tempfile::tempdir().unwrap();
    let acknowledged = fill(parent.path(), Durability::Power, (2, 5, 9), true);
    Raw::open(parent.path()).close();
    let store = open(parent.path(), Durability::Power).unwrap();
    acknowledged.missing_in(&store).unwrap();
}

#[test]
fn a_record_removed_from_the_middle() {
    let remove = |db: &Raw, records: &Records| db.remove(&records[2].0);
    refused_after(remove, "orders[0] has a hole");
}

#[test]
fn the_first_record_of_a_partition_removed() {
    for first in [0, 5] {
        let remove = |db: &Raw, records: &Records| db.remove(&records[first].0);
        refused_after(remove, "has a hole");
    }
}

#[test]
fn the_last_record_of_a_partition_removed() {
    for last in [4, 9] {
        let remove = |db: &Raw, records: &Records| db.remove(&records[last].0);
        refused_after(remove, "had been acknowledged up to");
    }
}

#[test]
fn every_record_of_a_partition_removed() {
    let remove = |db: &Raw, records: &Records| {
        for (key, _) in &records[..5] {
            db.remove(key);
        }
    };
    refused_after(remove, "ends at offset 0");
    let clear = |db: &Raw, records: &Records| {
        for (key, _) in records {
            db.remove(key);
        }
    };
    refused_after(clear, "ends at offset 0");
}

#[test]
fn a_record_with_a_changed_byte() {
    let change = |db: &Raw, records: &Records| {
        let (key, value) = &records[7];
        let mut value = value.clone();
        value[80] ^= 0x10;
        db.insert(key, &value);
    };
    refused_after(change, "checksum does not match");
}

#[test]
fn a_record_under_another_key() {
    let shift = |db: &Raw, records: &Records| {
        db.insert(&records[2].0, &records[3].1);
    };
    refused_after(shift, "checksum does not match");
    let swap_partitions = |db: &Raw, records: &Records| {
        db.insert(&records[0].0, &records[5].1);
    };
    refused_after(swap_partitions, "checksum does not match");
}

#[test]
fn a_record_of_an_unknown_partition_or_of_none() {
    let unknown = |db: &Raw, _: &Records| {
        let lease = Lease {
            id: PartitionId(2),
            epoch: 1,
            head: None,
            in_doubt: false,
        };
        let unit = unit(&lease, 0, 3);
        let logged = first(unit);
        let key = format::log_key(PartitionId(2), logged.place);
        db.insert(key.as_ref(), &format::encode(&logged));
    };
    refused_after(unknown, "partition number 2, which has no name");
    let none = |db: &Raw, _: &Records| db.insert(b"zzz", b"zzz");
    refused_after(none, "a key that is none of the log's");
}

/// Without a release nothing outside the log knew of a store under `Process`. The next opening
/// must have told.
#[test]
fn a_record_removed_after_an_opening_that_found_it() {
    let parent = tempfile::tempdir().unwrap();
    fill(parent.path(), Durability::Process, (1, 5, 9), false);
    drop(open(parent.path(), Durability::Process).unwrap());
    let db = Raw::open(parent.path());
    db.remove(&db.records().last().unwrap().0);
    db.close();
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
    state.log.harden().unwrap();
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
