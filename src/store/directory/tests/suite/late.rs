//! Units that only fill gaps: found again, and missed where they are gone.

use super::*;
use crate::store::contract::late::{gaps, late};

/// A store whose last two units are `late`'s, not given up.
fn late_store(path: &Path, durability: Durability) {
    let store = open(path, durability).unwrap();
    store.bind(&owner()).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    for unit in late(&lease) {
        store.commit(&[unit]).unwrap();
    }
}

#[test]
fn gaps_and_what_filled_them_come_back() {
    for &durability in &DURABILITIES[..2] {
        let parent = tempfile::tempdir().unwrap();
        late_store(parent.path(), durability);
        // Opened again, one gap less each time, at the same head.
        for left in [&[(2, 3), (6, 7)][..], &[(6, 7)], &[]] {
            let store = open(parent.path(), durability).unwrap();
            let lease = store.lease(&orders(0)).unwrap();
            let head = lease.head.unwrap();
            assert_eq!((head.next.get(), head.anchor.unwrap().offset), (10, 9));
            assert_eq!(store.gaps(lease.id), gaps(left));
            assert_eq!(store.summary().keys, 8);
            if let [_, rest @ ..] = left {
                let filler = CommitUnit {
                    gaps: gaps(rest),
                    ..unit(&lease, 10, 10)
                };
                store.commit(&[filler]).unwrap();
            }
        }
    }
}

#[test]
fn a_filler_that_is_gone_is_missed() {
    let parent = tempfile::tempdir().unwrap();
    late_store(parent.path(), Durability::Power);
    let db = Raw::open(parent.path());
    let last = db.records().pop().unwrap().0;
    assert_eq!(last.len(), 16, "a filler's key names its step");
    db.remove(&last);
    db.close();
    let text = refusal(parent.path(), Durability::Power).to_string();
    assert!(text.contains("ends at offset 10, but"), "{text}");
    assert!(text.contains("up to 10 (step 1)"), "{text}");
}

#[test]
fn a_filler_that_is_gone_from_the_middle_is_missed() {
    let parent = tempfile::tempdir().unwrap();
    late_store(parent.path(), Durability::Process);
    let store = open(parent.path(), Durability::Process).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    store.commit(&[unit(&lease, 10, 12)]).unwrap();
    drop(store);
    let db = Raw::open(parent.path());
    let mut keys = db.records().into_iter().map(|(key, _)| key);
    let filler = keys.rfind(|key| key.len() == 16);
    db.remove(&filler.unwrap());
    db.close();
    let text = refusal(parent.path(), Durability::Process).to_string();
    assert!(text.contains("follows step 1 at 10, not 0"), "{text}");
}
