//! The engine without Kafka, by its public face.
// Helpers stand outside the test functions, where clippy does not see that they are tests'.
#![allow(clippy::unwrap_used, clippy::panic)]

mod claims;
mod late;
mod limits;

use std::sync::Arc;
use std::time::Duration;

use idempotent_consumer::engine::{Candidate, Engine, Ledger, Look};
use idempotent_consumer::key::Scope;
use idempotent_consumer::store::{MemoryStore, Owner, Place, Store as _, StoreError};
use idempotent_consumer::{Decision, NextOffset, TopicPartition};

fn owner() -> Owner {
    Owner {
        group: "shop".into(),
        recipe: "line".into(),
        scope: "topic".into(),
    }
}

fn engine_on(store: &Arc<MemoryStore>) -> Engine {
    Engine::new(Arc::clone(store) as _, &owner(), Scope::Topic).unwrap()
}

fn engine() -> Engine {
    engine_on(&Arc::default())
}

fn orders(partition: i32) -> TopicPartition {
    TopicPartition::new("orders", partition)
}

fn order(ledger: &Ledger, offset: i64, key: &str) -> Candidate {
    ledger.candidate(offset, key.as_bytes(), Some(b"v"))
}

fn look(ledger: &Ledger, candidate: &Candidate) -> Look {
    ledger.look(candidate).unwrap()
}

fn decision(look: Look) -> (Decision, bool) {
    match look {
        Look::Known {
            decision, durable, ..
        } => (decision, durable),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_key_in_flight_in_one_ledger_is_busy_in_another_until_it_is_durable() {
    let engine = engine();
    let mut first = engine.lease(&orders(0)).unwrap();
    let second = engine.lease(&orders(1)).unwrap();
    let (here, there) = (order(&first, 7, "a"), order(&second, 3, "a"));
    assert_eq!(look(&first, &here), Look::New);
    assert_eq!(look(&second, &there), Look::Busy);
    assert!(!second.wait_free(&there, Duration::ZERO));
    first.done(&here, None).unwrap();
    // Done, but a crash could still undo it.
    assert_eq!(look(&second, &there), Look::Busy);
    engine.commit().unwrap();
    assert!(second.wait_free(&there, Duration::ZERO));
    let known = look(&second, &there);
    assert_eq!(decision(known), (Decision::Duplicate, true));
    let Look::Known { mark, .. } = known else {
        unreachable!()
    };
    assert_eq!(mark.offset, 7);
}

#[test]
fn a_released_key_goes_to_whoever_waits() {
    let engine = engine();
    let first = engine.lease(&orders(0)).unwrap();
    let second = engine.lease(&orders(1)).unwrap();
    let (here, there) = (order(&first, 0, "a"), order(&second, 0, "a"));
    assert_eq!(look(&first, &here), Look::New);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| second.wait_free(&there, Duration::from_secs(60)));
        first.release(&here);
        assert!(waiter.join().unwrap());
    });
    assert_eq!(look(&second, &there), Look::New);
    assert_eq!(look(&first, &here), Look::Busy);
}

#[test]
fn a_released_key_that_is_not_ones_own_stays() {
    let engine = engine();
    let first = engine.lease(&orders(0)).unwrap();
    let second = engine.lease(&orders(1)).unwrap();
    let (here, there) = (order(&first, 0, "a"), order(&second, 0, "a"));
    assert_eq!(look(&first, &here), Look::New);
    second.release(&there);
    assert_eq!(look(&second, &there), Look::Busy);
}

// C014
#[test]
fn the_same_offset_again_is_a_redelivery_before_and_behind_the_commit() {
    let engine = engine();
    let mut ledger = engine.lease(&orders(0)).unwrap();
    let (seven, copy) = (order(&ledger, 7, "a"), order(&ledger, 8, "a"));
    let other = ledger.candidate(9, b"a", Some(b"another value"));
    assert_eq!(look(&ledger, &seven), Look::New);
    ledger.done(&seven, None).unwrap();
    for durable in [false, true] {
        assert_eq!(
            decision(look(&ledger, &seven)),
            (Decision::Redelivery, durable)
        );
        assert_eq!(
            decision(look(&ledger, &copy)),
            (Decision::Duplicate, durable)
        );
        assert_eq!(
            decision(look(&ledger, &other)),
            (Decision::Mismatch, durable)
        );
        engine.commit().unwrap();
    }
}

#[test]
fn a_commit_says_how_far_each_partition_has_come_and_a_second_one_has_nothing_to_say() {
    let engine = engine();
    let mut ledgers = [0, 1].map(|n| engine.lease(&orders(n)).unwrap());
    for (ledger, last) in ledgers.iter_mut().zip([4, 9]) {
        let candidate = order(ledger, last, &format!("key-{last}"));
        assert_eq!(look(ledger, &candidate), Look::New);
        ledger.done(&candidate, None).unwrap();
    }
    let mut committed = engine.commit().unwrap();
    committed.sort_by_key(|done| done.partition.partition());
    let next: Vec<_> = committed.iter().map(|done| done.next.get()).collect();
    assert_eq!(next, [5, 10]);
    assert_eq!(engine.commit().unwrap(), []);
}

// C050
#[test]
fn gaps_between_offsets_hold_nothing_up() {
    let engine = engine();
    let mut ledger = engine.lease(&orders(0)).unwrap();
    for offset in [0, 1, 4, 5, 9] {
        let candidate = order(&ledger, offset, &format!("key-{offset}"));
        assert_eq!(look(&ledger, &candidate), Look::New);
        ledger.done(&candidate, None).unwrap();
    }
    assert_eq!(engine.commit().unwrap()[0].next, NextOffset::after(9));
}

#[test]
fn a_unit_is_in_the_store_whole_with_keys_results_and_head() {
    let store = Arc::<MemoryStore>::default();
    let engine = engine_on(&store);
    let mut ledger = engine.lease(&orders(0)).unwrap();
    let id = ledger.lease().id;
    let (first, second) = (order(&ledger, 0, "a"), order(&ledger, 1, "b"));
    for (candidate, result) in [(&first, Some(b"receipt".to_vec().into())), (&second, None)] {
        assert_eq!(look(&ledger, candidate), Look::New);
        ledger.done(candidate, result).unwrap();
    }
    ledger.skip(&order(&ledger, 2, "a")).unwrap();
    assert_eq!(store.unit_behind(id, Place::default()).unwrap(), None);
    engine.commit().unwrap();
    let (_, unit) = store.unit_behind(id, Place::default()).unwrap().unwrap();
    assert_eq!(
        (unit.previous.get(), unit.next.get(), unit.entries.len()),
        (0, 3, 2)
    );
    assert_eq!(unit.entries[0].result.as_deref(), Some(&b"receipt"[..]));
    assert_eq!(unit.anchor.unwrap().offset, 2);
}

#[test]
fn an_orderly_end_commits_and_leaves_no_doubt() {
    let store = Arc::<MemoryStore>::default();
    let engine = engine_on(&store);
    let mut ledger = engine.lease(&orders(0)).unwrap();
    assert!(!ledger.lease().in_doubt);
    let candidate = order(&ledger, 0, "a");
    assert_eq!(look(&ledger, &candidate), Look::New);
    ledger.done(&candidate, None).unwrap();
    let committed = ledger.finish().unwrap().unwrap();
    assert_eq!(committed.next.get(), 1);
    let again = engine_on(&store).lease(&orders(0)).unwrap();
    assert!(!again.lease().in_doubt);
    assert_eq!(again.lease().head.unwrap().next.get(), 1);
    assert_eq!(again.finish().unwrap(), None);
}

#[test]
fn a_dropped_ledger_gives_up_what_was_not_committed_and_leaves_doubt() {
    let store = Arc::<MemoryStore>::default();
    let engine = engine_on(&store);
    let mut ledger = engine.lease(&orders(0)).unwrap();
    let other = engine.lease(&orders(1)).unwrap();
    let candidate = order(&ledger, 0, "a");
    assert_eq!(look(&ledger, &candidate), Look::New);
    ledger.done(&candidate, None).unwrap();
    drop(ledger);
    assert_eq!(engine.commit().unwrap(), []);
    assert_eq!(look(&other, &order(&other, 0, "a")), Look::New);
    let again = engine.lease(&orders(0)).unwrap();
    assert!(again.lease().in_doubt);
    assert_eq!(again.lease().head, None);
}

#[test]
fn a_newer_ledger_keeps_what_the_older_settled_and_refuses_what_comes_late() {
    let engine = engine();
    let mut older = engine.lease(&orders(0)).unwrap();
    let (settled, late) = (order(&older, 0, "settled"), order(&older, 1, "late"));
    assert_eq!(look(&older, &settled), Look::New);
    older.done(&settled, None).unwrap();
    assert_eq!(look(&older, &late), Look::New);

    let newer = engine.lease(&orders(0)).unwrap();
    assert!(newer.lease().in_doubt);
    assert_eq!(newer.lease().head.unwrap().next.get(), 1);
    assert_eq!(
        decision(look(&newer, &settled)),
        (Decision::Redelivery, true)
    );
    // In the older one's hands still: its handler may be at work.
    assert_eq!(look(&newer, &late), Look::Busy);
    let refused = older.done(&late, None).unwrap_err();
    assert!(
        matches!(refused, StoreError::Fenced { ours: 1, .. }),
        "{refused}"
    );
    // It took effect: only the record itself is handled again, in doubt, and no copy of it.
    let elsewhere = engine.lease(&orders(1)).unwrap();
    let copy = order(&elsewhere, 9, "late");
    assert_eq!(look(&elsewhere, &copy), Look::Busy);
    assert_eq!(look(&newer, &late), Look::New);
    // Its end neither frees the newer one's key nor hides that it did not end in order.
    let refused = older.finish().unwrap_err();
    assert!(matches!(refused, StoreError::Fenced { .. }), "{refused}");
    let third = engine.lease(&orders(1)).unwrap();
    assert_eq!(look(&third, &order(&third, 0, "late")), Look::Busy);
}

#[test]
fn an_engine_on_a_foreign_store_is_refused() {
    let store = Arc::<MemoryStore>::default();
    let _first = engine_on(&store);
    let audit = Owner {
        group: "audit".into(),
        ..owner()
    };
    let refused = Engine::new(store, &audit, Scope::Topic).err().unwrap();
    assert!(
        matches!(refused, StoreError::Foreign { what: "group", .. }),
        "{refused}"
    );
}

#[test]
fn keys_of_two_topics_and_of_absent_and_empty_values_are_kept_apart() {
    let engine = engine();
    let mut eu = engine.lease(&TopicPartition::new("orders-eu", 0)).unwrap();
    let us = engine.lease(&TopicPartition::new("orders-us", 0)).unwrap();
    let candidate = eu.candidate(0, b"1", None);
    assert_eq!(look(&eu, &candidate), Look::New);
    eu.done(&candidate, None).unwrap();
    engine.commit().unwrap();
    assert_eq!(look(&us, &us.candidate(0, b"1", None)), Look::New);
    let empty = eu.candidate(1, b"1", Some(b""));
    assert_eq!(decision(look(&eu, &empty)), (Decision::Mismatch, true));
    assert_eq!(look(&eu, &eu.candidate(2, b"", None)), Look::New);
}

// C083
#[test]
fn many_ledgers_that_race_for_the_same_keys_handle_each_once() {
    let engine = engine();
    let handled = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for partition in 0..4 {
            let (engine, handled) = (&engine, &handled);
            scope.spawn(move || {
                let mut ledger = engine.lease(&orders(partition)).unwrap();
                for n in 0..2_000_i64 {
                    let candidate = order(&ledger, n, &format!("key-{n}"));
                    loop {
                        match look(&ledger, &candidate) {
                            Look::New => {
                                handled.lock().unwrap().push(n);
                                ledger.done(&candidate, None).unwrap();
                            }
                            Look::Known { .. } => ledger.skip(&candidate).unwrap(),
                            Look::Busy => {
                                engine.commit().unwrap();
                                let _free = ledger.wait_free(&candidate, Duration::from_millis(1));
                                continue;
                            }
                        }
                        break;
                    }
                }
                ledger.finish().unwrap();
            });
        }
    });
    let mut handled = handled.into_inner().unwrap();
    handled.sort_unstable();
    assert!(handled.into_iter().eq(0..2_000));
}
