//! A store that the first version wrote opens for ever.

use std::path::{Path, PathBuf};

use idempotent_consumer::store::{Durability, Mark, Store as _};

use crate::files::copy;
use crate::kept::FIXTURE;
use crate::model::{at, check, key, open, orders, owner, result, unit};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(FIXTURE)
}

/// How the fixture came to be. A new format gets a fixture beside it, never in its place.
#[test]
#[ignore = "writes a directory of tests/fixtures, once for ever"]
fn write_the_fixture() {
    assert!(!fixture().exists(), "there is one");
    let store = open(&fixture(), Durability::Power).unwrap();
    store.bind(&owner()).unwrap();
    store.bind_cluster("Some-Cluster-Id-of-22-").unwrap();
    let leases = [0, 1].map(|partition| store.lease(&orders(partition)).unwrap());
    for round in 0..20 {
        let units = leases.map(|lease| unit(&lease, round * 10, round * 10 + 10));
        store.commit(&units).unwrap();
    }
    store.commit(&[unit(&leases[0], 200, 205)]).unwrap();
    // Partition 0 given up in order, partition 1 not.
    store.release(&leases[0]).unwrap();
}

// C086
#[test]
fn a_store_of_the_first_format_is_read_and_written() {
    let parent = tempfile::tempdir().unwrap();
    copy(&fixture(), parent.path());
    let store = open(parent.path(), Durability::Power).unwrap();
    assert_eq!(store.summary().keys, 405);
    check(&store, &[205, 200]).unwrap();
    store.bind(&owner()).unwrap();
    store.bind_cluster("Some-Cluster-Id-of-22-").unwrap();
    assert!(store.bind_cluster("another").is_err());

    let mut found = Vec::new();
    store
        .lookup(&[key(1, 198), key(1, 199), key(1, 200)], &mut found)
        .unwrap();
    let [Some(with), Some(without), None] = found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(
        without,
        Mark {
            id: with.id,
            offset: 199,
            value_digest: 0xc7 ^ 0xabcd,
            has_result: false,
            dead_lettered: false,
            forgotten: false,
            restored: false,
        }
    );
    assert_eq!(store.result(&key(1, 198), &with).unwrap(), result(1, 198));
    assert_eq!(
        store.result(&key(1, 198), &with).unwrap().unwrap(),
        b"shipped 1/198"
    );

    let leases = [0, 1].map(|partition| store.lease(&orders(partition)).unwrap());
    assert_eq!(leases.map(|lease| lease.epoch), [2, 2]);
    assert_eq!(leases.map(|lease| lease.in_doubt), [false, true]);
    let head = leases[0].head.unwrap();
    assert_eq!(
        (head.next, head.max_timestamp_ms),
        (at(205), 1_700_000_000_205)
    );
    let anchor = head.anchor.unwrap();
    assert_eq!((anchor.offset, anchor.digest), (204, 7));

    store.commit(&[unit(&leases[0], 205, 230)]).unwrap();
    drop(store);
    check(
        &open(parent.path(), Durability::Power).unwrap(),
        &[230, 200],
    )
    .unwrap();
}
