//! What is forgotten is open again, once and for all, and nothing else is.

mod limits;

use super::*;
use crate::key::{Fingerprinter, Identity, Scope};
use crate::store::contract::late::gaps as unfinished;
use crate::store::{Entry, Forget, Forgotten, Gap};

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];

fn print(store: &Kept, scope: Scope, partition: i32, key: &str) -> Fingerprint {
    let hash_key = store.state().stamp.hash_key(&store.paths.stamp).unwrap();
    let name = orders(partition);
    let hasher = Fingerprinter::new(&HashKey(hash_key), &owner().group, scope, &name);
    hasher.fingerprint(&Identity::Bytes(key.as_bytes().into()))
}

/// A store with `a` to `e` at offsets 3 to 7 of two partitions, each but the last with a result:
/// three in a first unit, two in a second. In partition 1 the keys have a prefix.
fn filled(path: &Path, scope: Scope) -> Kept {
    let store = open(path, Durability::Power).unwrap();
    let scope_name = scope.name().to_owned();
    let owner = Owner {
        scope: scope_name,
        ..owner()
    };
    store.bind(&owner).unwrap();
    for (partition, prefix) in [(0, ""), (1, "other ")] {
        let lease = store.lease(&orders(partition)).unwrap();
        for (previous, next, keys) in [(3, 6, &KEYS[..3]), (6, 8, &KEYS[3..])] {
            let entries = (previous..next).zip(keys);
            let entries = entries.map(|(offset, key)| Entry {
                fingerprint: print(&store, scope, partition, &format!("{prefix}{key}")),
                offset,
                value_digest: 7,
                result: (offset < 7).then(|| key.as_bytes().into()),
                dead_lettered: false,
                forgotten: false,
                restored: false,
            });
            let entries = entries.collect();
            let unit = unit(&lease, previous, next);
            store.commit(&[CommitUnit { entries, ..unit }]).unwrap();
        }
        store.release(&lease).unwrap();
    }
    store
}

/// Which keys of partition 0 suppress their record.
fn known(store: &Kept) -> Vec<&'static str> {
    let mut found = Vec::new();
    let keys = KEYS.map(|key| print(store, Scope::Topic, 0, key));
    store.lookup(&keys, &mut found).unwrap();
    let known = KEYS.into_iter().zip(&found);
    let known = known.filter(|(_, mark)| mark.is_some_and(|mark| !mark.forgotten));
    known.map(|(key, _)| key).collect()
}

fn gaps(list: &[(i64, i64)]) -> Gaps {
    let mut gaps = Gaps::default();
    for (from, to) in list {
        gaps.open(Gap {
            from: *from,
            to: *to,
            forgotten: true,
        });
    }
    gaps
}

fn all_gaps(store: &Kept) -> [Gaps; 2] {
    [0, 1].map(|id| store.gaps(PartitionId(id)))
}

/// The whole log.
fn units(store: &Kept) -> Vec<CommitUnit> {
    let mut units = Vec::new();
    for id in [0, 1].map(PartitionId) {
        let mut place = Place::default();
        while let Some((at, unit)) = store.unit_behind(id, place).unwrap() {
            units.push(unit);
            place = at;
        }
    }
    units
}

/// Every mark that was taken away has its offset open again.
fn no_mark_is_missed(store: &Kept) {
    for unit in units(store) {
        for entry in unit.entries.iter().filter(|entry| entry.forgotten) {
            let gap = store.gaps(unit.id).at(entry.offset);
            assert!(gap.is_some_and(|gap| gap.forgotten), "{entry:?}");
            assert_eq!(entry.result, None);
        }
    }
}

/// What is forgotten, what is known then, and what is open in each partition.
type Row<'a> = (Forget, &'a [&'a str], [&'a [(i64, i64)]; 2]);

fn summed(forgotten: &Forgotten) -> Vec<(i32, u64, Gaps, i64)> {
    let parts = forgotten.partitions.iter();
    let one = |part: &crate::store::Reopened| {
        let (position, offsets) = (part.position.get(), part.offsets.clone());
        (part.partition.partition(), part.keys, offsets, position)
    };
    parts.map(one).collect()
}

#[test]
fn what_is_named_is_open_again_and_nothing_else_is() {
    let all = &KEYS[..];
    let rows: [Row<'_>; 7] = [
        (
            Forget::key("orders", "b"),
            &["a", "c", "d", "e"],
            [&[(4, 5)], &[]],
        ),
        (Forget::key("orders", "other d"), all, [&[], &[(6, 7)]]),
        (
            Forget::offsets(&orders(0), 5..7),
            &["a", "b", "e"],
            [&[(5, 7)], &[]],
        ),
        (
            Forget::offsets(&orders(0), 0..4),
            &["b", "c", "d", "e"],
            [&[(3, 4)], &[]],
        ),
        (
            Forget::offsets(&orders(0), 7..999),
            &["a", "b", "c", "d"],
            [&[(7, 8)], &[]],
        ),
        (Forget::partition(&orders(1)), all, [&[], &[(3, 8)]]),
        (Forget::topic("orders"), &[], [&[(3, 8)], &[(3, 8)]]),
    ];
    for (forget, left, open_again) in rows {
        let parent = tempfile::tempdir().unwrap();
        let store = filled(parent.path(), Scope::Topic);
        let (heads, log) = (store.heads(), units(&store));
        let plan = store.plan_forget(&forget).unwrap();
        assert_eq!(units(&store), log, "a plan writes nothing");
        assert_eq!(known(&store), KEYS, "a plan changes nothing");
        assert_eq!(store.forget(&forget).unwrap(), plan);
        for _ in 0..2 {
            let store = open(parent.path(), Durability::Power).unwrap();
            assert_eq!(known(&store), left, "{forget}");
            assert_eq!(all_gaps(&store), open_again.map(gaps), "{forget}");
            assert_eq!(store.heads(), heads, "{forget}");
            no_mark_is_missed(&store);
        }
        let keys = open_again.iter().flat_map(|list| list.iter());
        let keys: i64 = keys.map(|(from, to)| to - from).sum();
        assert_eq!(plan.keys().cast_signed(), keys, "{forget}");
    }
}

#[test]
fn a_key_of_partition_scope_is_forgotten_where_it_is_named() {
    for (forget, expected) in [
        (Forget::key("orders", "b"), vec![(0, 1, gaps(&[(4, 5)]), 4)]),
        (
            Forget::key("orders", "other b").in_partition(1),
            vec![(1, 1, gaps(&[(4, 5)]), 4)],
        ),
    ] {
        let parent = tempfile::tempdir().unwrap();
        let store = filled(parent.path(), Scope::Partition);
        assert_eq!(summed(&store.forget(&forget).unwrap()), expected);
    }
}

#[test]
fn every_mark_of_a_key_goes_in_whatever_unit_and_partition() {
    let parent = tempfile::tempdir().unwrap();
    let store = filled(parent.path(), Scope::Topic);
    let copy = |fingerprint, offset, dead_lettered| Entry {
        fingerprint,
        offset,
        value_digest: 7,
        result: None,
        dead_lettered,
        forgotten: false,
        restored: false,
    };
    let a = print(&store, Scope::Topic, 0, "a");
    // As a restore leaves it, and a dead letter; and a gap that was there before.
    for (partition, dead_lettered) in [(0, true), (1, false)] {
        let lease = store.lease(&orders(partition)).unwrap();
        let late = CommitUnit {
            entries: vec![copy(a, 9, dead_lettered)],
            gaps: unfinished(&[(8, 9)]),
            ..unit(&lease, 8, 10)
        };
        store.commit(&[late]).unwrap();
    }
    let forgotten = store.forget(&Forget::key("orders", "a")).unwrap();
    let expected = [
        (0, 2, gaps(&[(3, 4), (9, 10)]), 3),
        (1, 1, gaps(&[(9, 10)]), 8),
    ];
    assert_eq!(summed(&forgotten), expected);
    let store = open(parent.path(), Durability::Power).unwrap();
    assert_eq!(known(&store), ["b", "c", "d", "e"]);
    let left = store.gaps(PartitionId(0));
    assert_eq!(left.at(8).map(|gap| gap.forgotten), Some(false));
    no_mark_is_missed(&store);
}

#[test]
fn done_again_it_is_known_again_with_its_new_result() {
    let parent = tempfile::tempdir().unwrap();
    filled(parent.path(), Scope::Topic)
        .forget(&Forget::key("orders", "b"))
        .unwrap();
    let store = open(parent.path(), Durability::Power).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    let b = print(&store, Scope::Topic, 0, "b");
    let again = Entry {
        fingerprint: b,
        offset: 4,
        value_digest: 7,
        result: Some(b"corrected"[..].into()),
        dead_lettered: false,
        forgotten: false,
        restored: false,
    };
    let filler = CommitUnit {
        entries: vec![again],
        gaps: Gaps::default(),
        ..unit(&lease, 8, 8)
    };
    store.commit(&[filler]).unwrap();
    drop(store);
    let store = open_after(parent.path());
    assert_eq!(known(&store), KEYS);
    let mut found = Vec::new();
    store.lookup(&[b], &mut found).unwrap();
    let result = store.result(&b, &found[0].unwrap()).unwrap();
    assert_eq!(result.as_deref(), Some(&b"corrected"[..]));
    drop(store);
    // And forgotten once more.
    let forgotten = open_after(parent.path())
        .forget(&Forget::key("orders", "b"))
        .unwrap();
    assert_eq!(summed(&forgotten), [(0, 1, gaps(&[(4, 5)]), 4)]);
    assert_eq!(known(&open_after(parent.path())), ["a", "c", "d", "e"]);
}

/// A store that another handle has just been dropped of.
fn open_after(path: &Path) -> Kept {
    std::iter::repeat_with(|| open(path, Durability::Power))
        .find_map(Result::ok)
        .unwrap()
}

#[test]
fn a_failure_in_the_middle_leaves_no_mark_without_its_gap() {
    let bad: &[u8] = &[0xff; 3];
    let parent = tempfile::tempdir().unwrap();
    let store = filled(parent.path(), Scope::Topic);
    let all = Forget::topic("orders");
    let plan = store.plan(&all).unwrap();
    // The reading of the second step fails behind the last record.
    store.state().log.insert(bad, vec![1]).unwrap();
    store.state().log.harden().unwrap();
    let error = store.carry_out(&plan).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    let poisoned = store.lease(&orders(0)).unwrap_err();
    assert!(
        matches!(poisoned, StoreError::Poisoned { .. }),
        "{poisoned}"
    );
    drop(store);
    let db = Raw::open(parent.path());
    db.remove(bad);
    db.close();
    let store = open_after(parent.path());
    no_mark_is_missed(&store);
    // An engine whose inserts are all or nothing together has undone the second step as a whole.
    let known = known(&store);
    assert!(known.is_empty() || known == KEYS, "{known:?}");
}

#[test]
fn a_crash_between_the_steps_loses_nothing_and_is_completed_by_forgetting_again() {
    let parent = tempfile::tempdir().unwrap();
    let store = filled(parent.path(), Scope::Topic);
    let all = Forget::topic("orders");
    let plan = store.plan(&all).unwrap();
    store.open_gaps(&mut store.state(), &plan).unwrap();
    store.state().log.sync().unwrap();
    drop(store);
    let store = open_after(parent.path());
    assert_eq!(known(&store), KEYS, "still known: skipped, not lost");
    assert_eq!(all_gaps(&store), [gaps(&[(3, 8)]), gaps(&[(3, 8)])]);
    let forgotten = store.forget(&all).unwrap();
    assert_eq!(forgotten.keys(), 10);
    let store = open_after(parent.path());
    assert_eq!(known(&store), [] as [&str; 0]);
    no_mark_is_missed(&store);
}

#[test]
fn a_key_that_was_done_from_a_dead_letter_is_forgotten_there_too() {
    let parent = tempfile::tempdir().unwrap();
    let store = filled(parent.path(), Scope::Topic);
    let letters = TopicPartition::new("orders-dlt", 0);
    let lease = store.lease(&letters).unwrap();
    let replayed = Entry {
        fingerprint: print(&store, Scope::Topic, 0, "z"),
        offset: 0,
        value_digest: 7,
        result: None,
        dead_lettered: false,
        forgotten: false,
        restored: false,
    };
    let entries = vec![replayed];
    store
        .commit(&[CommitUnit {
            entries,
            ..unit(&lease, 0, 1)
        }])
        .unwrap();
    let forgotten = store.forget(&Forget::key("orders", "z")).unwrap();
    let parts: Vec<_> = forgotten
        .partitions
        .iter()
        .map(|one| &one.partition)
        .collect();
    assert_eq!(parts, [&letters]);
    assert_eq!(open_after(parent.path()).gaps(lease.id), gaps(&[(0, 1)]));
}
