//! What every store must do, run against every store.
#![expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "offsets of a few thousand"
)]

use super::*;

pub(crate) fn owner() -> Owner {
    Owner {
        group: "g".into(),
        recipe: "record-key".into(),
        scope: "topic".into(),
    }
}

pub(crate) fn orders(partition: i32) -> TopicPartition {
    TopicPartition::new("orders", partition)
}

fn at(offset: i64) -> NextOffset {
    NextOffset::new(offset).unwrap()
}

pub(crate) fn key(n: u64) -> Fingerprint {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    bytes[8..].copy_from_slice(&n.to_le_bytes());
    Fingerprint::new(bytes)
}

pub(crate) fn unit(lease: &Lease, previous: i64, next: i64) -> CommitUnit {
    let entries = (previous..next).map(|offset| Entry {
        fingerprint: key(u64::from(lease.id.0) << 32 | offset as u64),
        offset,
        value_digest: offset as u64,
        result: (offset % 3 == 0).then(|| format!("result {offset}").into_bytes().into()),
        dead_lettered: false,
        forgotten: false,
        restored: false,
    });
    CommitUnit {
        id: lease.id,
        epoch: lease.epoch,
        previous: at(previous),
        next: at(next),
        max_timestamp_ms: next * 10,
        anchor: Some(Anchor {
            offset: next - 1,
            timestamp_ms: next * 10,
            digest: 1,
        }),
        entries: entries.collect(),
        gaps: Gaps::default(),
        outbox: Vec::new(),
    }
}

pub(crate) fn find(store: &dyn Store, wanted: Fingerprint) -> Option<Mark> {
    let mut found = Vec::new();
    store.lookup(&[wanted], &mut found).unwrap();
    found[0]
}

/// Runs every case on stores made by `fresh`.
pub(crate) fn contract<S: Store>(fresh: impl Fn() -> S) {
    keys_results_and_head_come_together(&fresh());
    late_and_uncontiguous_units_change_nothing(&fresh());
    the_first_mark_of_a_key_stands(&fresh());
    only_a_lease_that_ended_in_order_leaves_no_doubt(&fresh());
    another_owner_is_refused_by_name(&fresh());
    a_unit_without_keys_moves_the_head(&fresh());
    late::what_is_filled_later_is_there_with_its_result(&fresh());
    late::gaps_are_those_of_the_last_unit(&fresh());
    late::a_unit_that_changes_nothing_is_refused(&fresh());
    late::a_dead_letter_gives_way_to_what_took_effect(&fresh());
    late::a_forgotten_mark_gives_way_to_every_other(&fresh());
}

fn keys_results_and_head_come_together(store: &dyn Store) {
    store.bind(&owner()).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    let other = store.lease(&orders(1)).unwrap();
    assert_eq!((lease.head, lease.in_doubt), (None, false));
    assert_ne!(lease.id, other.id);
    assert_eq!(find(store, key(0)), None);
    store
        .commit(&[unit(&lease, 0, 4), unit(&other, 7, 9)])
        .unwrap();
    store.commit(&[unit(&lease, 4, 6)]).unwrap();
    for offset in 0..6 {
        let mark = find(store, key(offset)).unwrap();
        assert_eq!((mark.id, mark.offset), (lease.id, offset as i64));
        assert_eq!(
            (mark.value_digest, mark.has_result),
            (offset, offset % 3 == 0)
        );
        let result = store.result(&key(offset), &mark).unwrap();
        let expected = (offset % 3 == 0).then(|| format!("result {offset}").into_bytes());
        assert_eq!(result, expected);
    }
    let head = |next| {
        let anchor = Anchor {
            offset: next - 1,
            timestamp_ms: next * 10,
            digest: 1,
        };
        Some(Head {
            next: at(next),
            anchor: Some(anchor),
            max_timestamp_ms: next * 10,
        })
    };
    assert_eq!(store.heads(), [(orders(0), head(6)), (orders(1), head(9))]);
    assert_eq!(store.summary().keys, 8);
}

fn late_and_uncontiguous_units_change_nothing(store: &dyn Store) {
    store.bind(&owner()).unwrap();
    let old = store.lease(&orders(0)).unwrap();
    store.commit(&[unit(&old, 0, 2)]).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    assert!(lease.epoch > old.epoch);
    let good = unit(&store.lease(&orders(1)).unwrap(), 0, 1);
    let refused = [unit(&old, 2, 3), unit(&lease, 3, 4), unit(&lease, 1, 3)];
    for bad in refused {
        // Beside a good one: nothing of either may stay.
        let error = store.commit(&[good.clone(), bad.clone()]).unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::Fenced { .. } | StoreError::NotContiguous { .. }
            ),
            "{error}"
        );
        assert_eq!(find(store, good.entries[0].fingerprint), None);
    }
    let empty = CommitUnit {
        next: at(2),
        entries: vec![],
        ..unit(&lease, 2, 3)
    };
    assert!(matches!(
        store.commit(&[empty]),
        Err(StoreError::NotContiguous { .. })
    ));
    let stranger = CommitUnit {
        id: PartitionId(99),
        ..unit(&lease, 2, 3)
    };
    assert!(store.commit(&[stranger]).is_err());
    assert!(matches!(
        store.release(&old),
        Err(StoreError::Fenced { .. })
    ));
    assert_eq!(store.summary().keys, 2);
    // A refusal is no failure: the store goes on.
    store.commit(&[good, unit(&lease, 2, 3)]).unwrap();
}

fn the_first_mark_of_a_key_stands(store: &dyn Store) {
    store.bind(&owner()).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    let first = unit(&lease, 0, 1);
    let again = CommitUnit {
        entries: vec![Entry {
            offset: 1,
            value_digest: 99,
            ..first.entries[0].clone()
        }],
        ..unit(&lease, 1, 2)
    };
    store.commit(&[first]).unwrap();
    store.commit(&[again]).unwrap();
    let mark = find(store, key(0)).unwrap();
    assert_eq!((mark.offset, mark.value_digest), (0, 0));
    assert_eq!(store.summary().keys, 1);
}

fn only_a_lease_that_ended_in_order_leaves_no_doubt(store: &dyn Store) {
    store.bind(&owner()).unwrap();
    let first = store.lease(&orders(0)).unwrap();
    store.commit(&[unit(&first, 0, 2)]).unwrap();
    let second = store.lease(&orders(0)).unwrap();
    assert!(second.in_doubt, "the first was never released");
    store.release(&second).unwrap();
    let third = store.lease(&orders(0)).unwrap();
    assert!(!third.in_doubt);
    assert_eq!(third.head.unwrap().next, at(2));
}

fn another_owner_is_refused_by_name(store: &dyn Store) {
    let key = store.bind(&owner()).unwrap();
    assert_eq!(store.bind(&owner()).unwrap(), key);
    let others = [
        (
            Owner {
                group: "h".into(),
                ..owner()
            },
            "group",
        ),
        (
            Owner {
                recipe: "value".into(),
                ..owner()
            },
            "key recipe",
        ),
        (
            Owner {
                scope: "partition".into(),
                ..owner()
            },
            "scope",
        ),
    ];
    for (other, named) in others {
        let answer = store.bind(&other);
        let refused = matches!(&answer, Err(StoreError::Foreign { what, .. }) if *what == named);
        assert!(refused, "{answer:?}");
    }
    store.bind_cluster("one").unwrap();
    store.bind_cluster("one").unwrap();
    let error = store.bind_cluster("two").unwrap_err().to_string();
    assert!(
        error.contains("\"one\"") && error.contains("\"two\""),
        "{error}"
    );
}

fn a_unit_without_keys_moves_the_head(store: &dyn Store) {
    store.bind(&owner()).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    store
        .commit(&[CommitUnit {
            entries: vec![],
            ..unit(&lease, 0, 1000)
        }])
        .unwrap();
    assert_eq!(
        store.lease(&orders(0)).unwrap().head.unwrap().next,
        at(1000)
    );
}
