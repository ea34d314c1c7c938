//! What is kept from a death of the process before it is in the log.

use super::*;

fn opened(path: &Path) -> Kept {
    let store = open(path, Durability::Power).unwrap();
    store.bind(&owner()).unwrap();
    store
}

fn head(store: &Kept) -> i64 {
    store.heads()[0].1.unwrap().next.get()
}

fn knows(store: &Kept, units: &[CommitUnit]) -> usize {
    let entries = units.iter().flat_map(|unit| &unit.entries);
    let keys: Vec<_> = entries.map(|entry| entry.fingerprint).collect();
    let mut found = Vec::new();
    store.lookup(&keys, &mut found).unwrap();
    found.iter().flatten().count()
}

/// A store at 10, with what was committed up to there.
fn at_ten(path: &Path) -> (Kept, Lease) {
    let store = opened(path);
    let lease = store.lease(&orders(0)).unwrap();
    store.commit(&[unit(&lease, 0, 10)]).unwrap();
    (store, lease)
}

#[test]
fn what_was_kept_and_not_committed_is_done_once_the_store_is_opened_again() {
    let parent = tempfile::tempdir().unwrap();
    let (store, lease) = at_ten(parent.path());
    let kept = [(10, 15), (15, 30), (30, 31)].map(|(from, to)| unit(&lease, from, to));
    assert!(kept.iter().all(|unit| store.journal(unit)));
    assert_eq!((head(&store), knows(&store, &kept)), (10, 0), "not before");
    drop(store);
    for _ in 0..2 {
        let store = opened(parent.path());
        let entries = kept.iter().map(|unit| unit.entries.len()).sum();
        assert_eq!((head(&store), knows(&store, &kept)), (31, entries));
    }
    let store = opened(parent.path());
    let lease = store.lease(&orders(0)).unwrap();
    assert!(lease.in_doubt);
    assert!(
        !store.may_lack_kept(lease.id),
        "the machine was there all the time"
    );
    store.commit(&[unit(&lease, 31, 40)]).unwrap();
}

#[test]
fn a_commit_may_hold_several_that_were_kept_and_some_that_were_not() {
    let parent = tempfile::tempdir().unwrap();
    let (store, lease) = at_ten(parent.path());
    assert!(store.journal(&unit(&lease, 10, 15)));
    assert!(store.journal(&unit(&lease, 15, 30)));
    store.commit(&[unit(&lease, 10, 33)]).unwrap();
    assert!(store.journal(&unit(&lease, 33, 34)));
    drop(store);
    assert_eq!(head(&opened(parent.path())), 34);
}

#[test]
fn what_does_not_continue_the_log_is_passed_over() {
    let parent = tempfile::tempdir().unwrap();
    let (store, lease) = at_ten(parent.path());
    // Without a head it is not known where the partition begins.
    let other = store.lease(&orders(1)).unwrap();
    assert!(store.journal(&unit(&other, 5, 6)));
    assert!(store.journal(&unit(&lease, 10, 20)));
    assert!(store.journal(&unit(&lease, 21, 30)), "behind a hole");
    drop(store);
    let store = opened(parent.path());
    assert_eq!(head(&store), 20);
    assert_eq!(store.heads()[1].1, None);
}

#[test]
fn a_record_that_is_torn_ends_what_is_believed() {
    for cut in [1, 9, 40] {
        let parent = tempfile::tempdir().unwrap();
        let (store, lease) = at_ten(parent.path());
        for (from, to) in [(10, 20), (20, 30)] {
            assert!(store.journal(&unit(&lease, from, to)));
        }
        drop(store);
        let path = parent.path().join("journal");
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.len() - cut;
        bytes[at] ^= 0x10;
        fs::write(&path, bytes).unwrap();
        assert_eq!(head(&opened(parent.path())), 20, "{cut}");
    }
}

#[test]
fn what_an_older_lease_kept_is_not_believed_and_the_newer_one_may_lack_it() {
    let parent = tempfile::tempdir().unwrap();
    let (store, old) = at_ten(parent.path());
    assert!(store.journal(&unit(&old, 10, 20)));
    assert!(!store.may_lack_kept(old.id));
    let new = store.lease(&orders(0)).unwrap();
    assert!(store.may_lack_kept(new.id));
    drop(store);
    let store = opened(parent.path());
    assert_eq!(head(&store), 10);
    let lease = store.lease(&orders(0)).unwrap();
    assert!(store.may_lack_kept(lease.id), "nor does the next process");
    store.release(&lease).unwrap();
    assert!(!store.may_lack_kept(lease.id));
}

#[test]
fn after_a_power_cut_what_was_kept_may_be_lacking() {
    let parent = tempfile::tempdir().unwrap();
    let (store, lease) = at_ten(parent.path());
    drop(store);
    let path = parent.path().join("journal");
    let mut bytes = fs::read(&path).unwrap();
    // As another boot would have it.
    bytes[0] ^= 1;
    fs::write(&path, bytes).unwrap();
    let store = opened(parent.path());
    assert!(store.may_lack_kept(lease.id));
    drop(store);
    // Whoever opened it first has only looked, or died before the end of what is in doubt.
    let store = opened(parent.path());
    let lease = store.lease(&orders(0)).unwrap();
    assert!(store.may_lack_kept(lease.id));
    drop(store);
    let store = opened(parent.path());
    let lease = store.lease(&orders(0)).unwrap();
    assert!(lease.in_doubt && store.may_lack_kept(lease.id));
    store.release(&lease).unwrap();
    assert!(!store.may_lack_kept(lease.id));
    drop(store);
    fs::remove_file(&path).unwrap();
    let store = opened(parent.path());
    let lease = store.lease(&orders(0)).unwrap();
    assert!(!lease.in_doubt && !store.may_lack_kept(lease.id));
    drop(store);
    fs::remove_file(&path).unwrap();
    let store = opened(parent.path());
    assert!(store.may_lack_kept(lease.id));
    assert_eq!(head(&store), 10);
}

#[test]
fn room_is_used_again_once_the_log_has_what_it_holds_and_not_before() {
    let parent = tempfile::tempdir().unwrap();
    let (store, lease) = at_ten(parent.path());
    let (mut at, mut logged, mut rounds) = (10, 10, 0);
    // Both halves are filled, and begun again.
    while rounds < 3 {
        let next = unit(&lease, at, at + 2_000);
        if store.journal(&next) {
            at += 2_000;
            continue;
        }
        rounds += 1;
        assert!(!store.journal(&next), "there is still no room");
        while logged < at {
            store
                .commit(&[unit(&lease, logged, logged + 2_000)])
                .unwrap();
            logged += 2_000;
        }
    }
    assert!(store.journal(&unit(&lease, at, at + 2_000)));
    let bytes = fs::metadata(parent.path().join("journal")).unwrap().len();
    assert!(bytes <= (16 << 20) + 64, "{bytes}");
    drop(store);
    assert_eq!(head(&opened(parent.path())), at + 2_000);
}
