//! What is not forgotten.

use super::*;

#[test]
fn what_cannot_be_forgotten_is_refused_with_the_reason_and_nothing_changes() {
    let parent = tempfile::tempdir().unwrap();
    let mut store = filled(parent.path(), Scope::Topic);
    let other = TopicPartition::new("orders", 9);
    for (forget, said) in [
        (Forget::key("orders", "z"), "no such key was done"),
        (
            Forget::key("order", "a"),
            "knows is orders[0] from 3 up to 8, orders[1]",
        ),
        (
            Forget::partition(&other),
            "knows is orders[0] from 3 up to 8",
        ),
        (
            Forget::offsets(&orders(0), 8..20),
            "knows is orders[0] from 3 up to 8",
        ),
        (Forget::offsets(&orders(0), 5..5), "no range of offsets"),
        (Forget::offsets(&orders(0), -1..5), "no range of offsets"),
        (
            Forget::key("orders", "a").in_partition(0),
            "leave out the partition",
        ),
        (
            Forget::cloud_event("orders", "a", "b"),
            "named by its bytes",
        ),
    ] {
        let error = store.forget(&forget).unwrap_err();
        assert!(matches!(error, StoreError::NotForgotten { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.contains(said) && text.contains(&parent.path().display().to_string()),
            "{text}"
        );
        store = open_after(parent.path());
        assert_eq!(
            (known(&store), all_gaps(&store)),
            (KEYS.to_vec(), [gaps(&[]), gaps(&[])])
        );
    }
    store.forget(&Forget::key("orders", "a")).unwrap();
    let again = open_after(parent.path())
        .forget(&Forget::key("orders", "a"))
        .unwrap_err();
    assert!(again.to_string().contains("forgotten already"), "{again}");
    let empty = tempfile::tempdir().unwrap();
    let unused = open(empty.path(), Durability::Power).unwrap();
    let error = unused.forget(&Forget::topic("orders")).unwrap_err();
    assert!(
        error.to_string().contains("no consumer has used"),
        "{error}"
    );
}

#[test]
fn single_ranges_are_bounded_so_that_a_unit_is() {
    let parent = tempfile::tempdir().unwrap();
    let store = filled(parent.path(), Scope::Topic);
    let a = print(&store, Scope::Topic, 0, "a");
    let lease = store.lease(&orders(0)).unwrap();
    let entries = |from: i64, to: i64| {
        (from..to)
            .filter(|offset| offset % 2 == 1)
            .map(|offset| Entry {
                fingerprint: a,
                offset,
                value_digest: 7,
                result: None,
                dead_lettered: false,
                forgotten: false,
                restored: false,
            })
    };
    for (from, to) in [(8, 1_100), (1_100, 2_010)] {
        let entries = entries(from, to).collect();
        store
            .commit(&[CommitUnit {
                entries,
                ..unit(&lease, from, to)
            }])
            .unwrap();
    }
    let error = store.plan_forget(&Forget::key("orders", "a")).unwrap_err();
    assert!(
        error.to_string().contains("more than 1000 ranges"),
        "{error}"
    );
    // As one range it is one.
    let forgotten = store
        .forget(&Forget::offsets(&orders(0), 8..2_010))
        .unwrap();
    assert_eq!(summed(&forgotten), [(0, 1_001, gaps(&[(8, 2_010)]), 8)]);
}
