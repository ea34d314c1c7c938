//! Records that are held and settled out of order.

use super::*;
use idempotent_consumer::store::{Gap, Gaps};

fn gaps(store: &MemoryStore, ledger: &Ledger) -> Vec<(i64, i64)> {
    let gaps: Gaps = store.gaps(ledger.lease().id);
    gaps.iter().map(|Gap { from, to, .. }| (from, to)).collect()
}

fn position(engine: &Engine) -> i64 {
    let committed = engine.commit().unwrap();
    committed.first().map_or(-1, |one| one.next.get())
}

// C002, C050
#[test]
fn the_position_is_the_lowest_unfinished_record_and_what_is_done_above_it_is_durable() {
    let store = Arc::<MemoryStore>::default();
    let engine = engine_on(&store);
    let mut ledger = engine.lease(&orders(0)).unwrap();
    // Offsets are missing, as compaction leaves them.
    let held = [3, 4, 6, 9].map(|offset| order(&ledger, offset, &format!("key-{offset}")));
    for candidate in &held {
        assert_eq!(look(&ledger, candidate), Look::New);
        ledger.hold(candidate);
    }
    let [first, second, third, last] = &held;
    ledger.done(third, Some(b"third".to_vec().into())).unwrap();
    assert_eq!(position(&engine), 3);
    assert_eq!(gaps(&store, &ledger), [(3, 5)]);
    ledger.done(last, None).unwrap();
    ledger.done(first, None).unwrap();
    assert_eq!(position(&engine), 4);
    assert_eq!(gaps(&store, &ledger), [(4, 5)]);
    // A crash: the ledger is gone without a word.
    drop(ledger);
    let mut again = engine.lease(&orders(0)).unwrap();
    assert_eq!(again.lease().head.unwrap().next.get(), 10);
    for candidate in [first, third, last] {
        assert!(matches!(
            look(&again, candidate),
            Look::Known { durable: true, .. }
        ));
    }
    assert_eq!(look(&again, second), Look::New);
    again.hold(second);
    again.done(second, None).unwrap();
    assert_eq!(position(&engine), 10);
    assert_eq!(gaps(&store, &again), []);
    again.finish().unwrap();
}

#[test]
fn a_copy_of_a_held_record_waits_for_it() {
    let engine = engine();
    let mut ledger = engine.lease(&orders(0)).unwrap();
    let (first, copy) = (order(&ledger, 0, "a"), order(&ledger, 1, "a"));
    assert_eq!(look(&ledger, &first), Look::New);
    ledger.hold(&first);
    assert_eq!(look(&ledger, &copy), Look::Busy);
    ledger.hold(&copy);
    // The first fails: the copy takes its place.
    ledger.release(&first);
    assert_eq!(look(&ledger, &copy), Look::New);
    assert_eq!(look(&ledger, &first), Look::Busy);
    ledger.done(&copy, None).unwrap();
    assert!(matches!(
        look(&ledger, &first),
        Look::Known { durable: false, .. }
    ));
    assert_eq!(position(&engine), 0, "the first one is not settled yet");
    ledger.skip(&first).unwrap();
    assert_eq!(position(&engine), 2);
}

#[test]
fn what_was_not_held_is_settled_in_order() {
    let engine = engine();
    let mut ledger = engine.lease(&orders(0)).unwrap();
    let (low, high) = (order(&ledger, 5, "a"), order(&ledger, 6, "b"));
    assert_eq!(look(&ledger, &low), Look::New);
    assert_eq!(look(&ledger, &high), Look::New);
    ledger.done(&high, None).unwrap();
    let answer = ledger.done(&low, None);
    assert!(matches!(answer, Err(StoreError::Misused(_))), "{answer:?}");
}

// C025
#[test]
fn a_dead_letter_answers_for_its_own_record_alone() {
    let engine = engine();
    let mut ledger = engine.lease(&orders(0)).unwrap();
    let (bad, copy) = (order(&ledger, 0, "a"), order(&ledger, 1, "a"));
    assert_eq!(look(&ledger, &bad), Look::New);
    ledger.dead_lettered(&bad).unwrap();
    assert_eq!(look(&ledger, &copy), Look::Busy, "not durable yet");
    assert_eq!(position(&engine), 1);
    assert!(matches!(
        look(&ledger, &bad),
        Look::Known { durable: true, .. }
    ));
    assert_eq!(look(&ledger, &copy), Look::New);
    ledger.done(&copy, None).unwrap();
    assert_eq!(position(&engine), 2);
    let replay = order(&ledger, 2, "a");
    assert!(matches!(look(&ledger, &replay), Look::Known { .. }));
}
