//! Where the fuzzer of the record decoder begins: records as a store writes them.

use std::fs;
use std::path::{Path, PathBuf};

use idempotent_consumer::store::{CommitUnit, Durability, Gap, Gaps, Lease, Store as _};

use crate::model::{at, open, orders, owner, unit};

fn seeds() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/record")
}

/// The store's own; sled opens its files with no other.
const SEGMENT_BYTES: usize = 8 << 20;
const LONG_KEY_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 4;

/// One of each kind: the first, one that leaves gaps, one that fills a part of them with a dead
/// letter, one with nothing but a position.
fn units(lease: &Lease) -> [CommitUnit; 4] {
    let gaps = |gaps: &[(i64, i64, bool)]| {
        let mut open = Gaps::default();
        for &(from, to, forgotten) in gaps {
            open.open(Gap {
                from,
                to,
                forgotten,
            });
        }
        open
    };
    let mut with_gaps = unit(lease, 1, 7);
    with_gaps
        .entries
        .retain(|entry| !(3..6).contains(&entry.offset));
    with_gaps.gaps = gaps(&[(3, 5, false), (5, 6, true)]);
    let mut filler = CommitUnit {
        previous: at(7),
        next: at(7),
        gaps: gaps(&[(4, 5, false), (5, 6, true)]),
        ..unit(lease, 3, 4)
    };
    filler.entries[0].dead_lettered = true;
    let bare = CommitUnit {
        anchor: None,
        entries: Vec::new(),
        ..unit(lease, 7, 1000)
    };
    [unit(lease, 0, 1), with_gaps, filler, bare]
}

/// To be run again with each new format. Those of older formats stay: they are read for ever.
#[test]
#[ignore = "writes fuzz/seeds/record"]
fn write_the_seeds() {
    let parent = tempfile::tempdir().unwrap();
    let store = open(parent.path(), Durability::Power).unwrap();
    store.bind(&owner()).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    for unit in units(&lease) {
        store.commit(&[unit]).unwrap();
    }
    drop(store);
    fs::create_dir_all(seeds()).unwrap();
    let log = sled::Config::new()
        .path(parent.path().join("log"))
        .segment_size(SEGMENT_BYTES)
        .open()
        .unwrap();
    for (n, record) in log.iter().enumerate() {
        let (key, value) = record.unwrap();
        let kind = u8::from(key.len() == LONG_KEY_BYTES);
        let body = &value[..value.len() - CHECKSUM_BYTES];
        let seed = [&[kind][..], &key, body].concat();
        fs::write(seeds().join(format!("format-{}-{n}", value[0])), seed).unwrap();
    }
}
