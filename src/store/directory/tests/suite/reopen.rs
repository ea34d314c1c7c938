//! What comes back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;

#[test]
fn keys_results_and_heads_come_back_under_every_durability() {
    for &durability in DURABILITIES {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("seen");
        // `None` promises nothing before a release.
        let acknowledged = fill(
            &path,
            durability,
            (3, 40, 50),
            durability == Durability::None,
        );
        for _ in 0..2 {
            let store = open(&path, durability).unwrap();
            acknowledged.missing_in(&store).unwrap();
            assert_eq!(store.summary().partitions, 3);
        }
    }
}

#[test]
fn the_last_result_and_the_work_after_a_reopening_come_back_too() {
    let parent = tempfile::tempdir().unwrap();
    let mut acknowledged = fill(parent.path(), Durability::Power, (2, 5, 9), false);
    for _ in 0..5 {
        let store = open(parent.path(), Durability::Power).unwrap();
        let units = [0, 1].map(|partition| {
            let lease = store.lease(&orders(partition)).unwrap();
            let next = lease.head.unwrap().next.get();
            unit(&lease, next, next + 4)
        });
        acknowledged.commit(&store, units.into());
        acknowledged.missing_in(&store).unwrap();
    }
    let store = open(parent.path(), Durability::Power).unwrap();
    acknowledged.missing_in(&store).unwrap();
}

#[test]
fn epochs_go_on_rising_and_fence_the_process_before() {
    let parent = tempfile::tempdir().unwrap();
    let mut last = None;
    for _ in 0..4 {
        let store = open(parent.path(), Durability::Power).unwrap();
        let lease = store.lease(&orders(0)).unwrap();
        if let Some(last) = last.replace(lease) {
            assert!(lease.epoch > last.epoch, "{lease:?} after {last:?}");
            let late = store.commit(&[unit(&last, 0, 1)]).unwrap_err();
            assert!(matches!(late, StoreError::Fenced { .. }), "{late}");
        }
    }
}

#[test]
fn owner_cluster_and_hash_key_come_back() {
    let parent = tempfile::tempdir().unwrap();
    let store = open(parent.path(), Durability::Power).unwrap();
    let key = store.bind(&owner()).unwrap();
    store.bind_cluster("one").unwrap();
    drop(store);
    let store = open(parent.path(), Durability::Power).unwrap();
    let other = Owner {
        group: "audit-svc".into(),
        ..owner()
    };
    let refused = store.bind(&other).unwrap_err().to_string();
    for part in [
        "\"ship-svc\"",
        "\"audit-svc\"",
        "group",
        "a store of its own",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(refused.contains(&parent.path().display().to_string()));
    assert_eq!(store.bind(&owner()).unwrap(), key);
    assert!(store.bind_cluster("two").is_err());
    store.bind_cluster("one").unwrap();
}

#[test]
fn another_store_hashes_with_another_key() {
    let parent = tempfile::tempdir().unwrap();
    let keys = ["a", "b"].map(|name| {
        let store = open(&parent.path().join(name), Durability::Power).unwrap();
        store.bind(&owner()).unwrap()
    });
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn a_lease_is_in_doubt_after_a_crash_and_not_after_a_release() {
    for &durability in DURABILITIES {
        let parent = tempfile::tempdir().unwrap();
        let lease = || {
            let store = open(parent.path(), durability).unwrap();
            let lease = store.lease(&orders(0)).unwrap();
            (store, lease)
        };
        let (store, first) = lease();
        assert!(!first.in_doubt);
        drop(store);
        let (store, second) = lease();
        assert!(second.in_doubt, "dropped without a release");
        store.commit(&[unit(&second, 0, 3)]).unwrap();
        store.release(&second).unwrap();
        drop(store);
        let (store, third) = lease();
        assert!(!third.in_doubt, "released");
        assert_eq!(third.head.unwrap().next.get(), 3);
        drop(store);
        assert!(lease().1.in_doubt);
    }
}

#[test]
fn two_units_of_one_partition_in_one_commit_are_refused_and_do_no_harm() {
    let parent = tempfile::tempdir().unwrap();
    let store = open(parent.path(), Durability::Power).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    let mut acknowledged = Acknowledged::default();
    for second in [unit(&lease, 0, 6), unit(&lease, 4, 6)] {
        let error = store.commit(&[unit(&lease, 0, 4), second]).unwrap_err();
        assert!(matches!(error, StoreError::Misused(_)), "{error}");
    }
    acknowledged.commit(&store, vec![unit(&lease, 0, 4)]);
    drop(store);
    let store = open(parent.path(), Durability::Power).unwrap();
    acknowledged.missing_in(&store).unwrap();
}

#[test]
fn a_partition_may_begin_elsewhere_while_nothing_was_committed() {
    let parent = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let store = open(parent.path(), Durability::Power).unwrap();
        assert_eq!(store.lease(&orders(0)).unwrap().head, None);
    }
    let mut acknowledged = Acknowledged::default();
    let store = open(parent.path(), Durability::Power).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    acknowledged.commit(&store, vec![unit(&lease, 5000, 5010)]);
    drop(store);
    acknowledged
        .missing_in(&open(parent.path(), Durability::Power).unwrap())
        .unwrap();
}

// C074
/// sled lets go of its lock on a thread of its own, late when all cores are busy.
#[test]
fn a_store_opens_again_at_once_under_load() {
    let parent = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let busy = thread::available_parallelism().unwrap().get() * 2;
    thread::scope(|scope| {
        for _ in 0..busy {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let mut failures = Vec::new();
        let mut next = 0;
        for round in 0..200 {
            match open(parent.path(), Durability::Process) {
                Ok(store) => {
                    let lease = store.lease(&orders(0)).unwrap();
                    assert_eq!(lease.head.map_or(0, |head| head.next.get()), next);
                    store.commit(&[unit(&lease, next, next + 3)]).unwrap();
                    next += 3;
                }
                Err(error) => failures.push(format!("round {round}: {error}")),
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert_eq!(failures, Vec::<String>::new());
    });
}
