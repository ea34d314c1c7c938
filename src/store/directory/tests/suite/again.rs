//! A key that is done once more, when the mark of the first time has expired.

use super::*;
use crate::store::contract::late::gaps;
use crate::store::{Entry, Expiry, Retaining as _};

/// Expires what lies below, as far as it goes.
pub(super) fn expire_below(store: &Kept, below: i64) {
    let expiry = Expiry {
        id: PartitionId(0),
        older_than_ms: i64::MAX,
        below: crate::record::NextOffset::new(below).unwrap(),
        entries: u64::MAX,
        bytes: u64::MAX,
    };
    while store.expire(&expiry).unwrap().units > 0 {}
}

/// The same key, of a record at another offset.
pub(super) fn again(entry: &Entry, offset: i64) -> Entry {
    Entry {
        offset,
        ..entry.clone()
    }
}

fn offset_of(store: &Kept, entry: &Entry) -> Option<i64> {
    let mut found = Vec::new();
    store.lookup(&[entry.fingerprint], &mut found).unwrap();
    found[0].map(|mark| mark.offset)
}

#[test]
fn a_key_done_again_after_its_late_mark_expired_is_known_now_and_after_a_restart() {
    let parent = tempfile::tempdir().unwrap();
    let store = open(parent.path(), Durability::Power).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    // The record at 5 is done late: its mark is in a unit that ends at 10.
    let mut early = unit(&lease, 0, 6);
    let five = early.entries.pop().unwrap();
    early.gaps = gaps(&[(5, 6)]);
    let mut next = unit(&lease, 6, 10);
    next.gaps = gaps(&[(5, 6)]);
    let filler = CommitUnit {
        entries: vec![five.clone()],
        gaps: Gaps::default(),
        ..unit(&lease, 10, 10)
    };
    for unit in [early, next, filler, unit(&lease, 10, 20)] {
        store.commit(&[unit]).unwrap();
    }
    assert_eq!(offset_of(&store, &five), Some(5));
    expire_below(&store, 6);
    assert_eq!(store.retained_from(PartitionId(0)).get(), 6);
    assert_eq!(offset_of(&store, &five), None);
    let mut later = unit(&lease, 20, 30);
    later.entries[3] = again(&five, 23);
    store.commit(&[later]).unwrap();
    assert_eq!(offset_of(&store, &five), Some(23));
    drop(store);
    let store = open(parent.path(), Durability::Power).unwrap();
    assert_eq!(offset_of(&store, &five), Some(23), "after a restart");
}
