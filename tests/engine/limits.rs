//! Several engines on one store, and what a ledger refuses or does by itself.

use super::*;

#[test]
fn a_key_in_flight_in_one_engine_is_busy_in_another_on_the_same_store() {
    let store = Arc::<MemoryStore>::default();
    let (one, two) = (engine_on(&store), engine_on(&store));
    let mut first = one.lease(&orders(0)).unwrap();
    let second = two.lease(&orders(1)).unwrap();
    let (here, there) = (order(&first, 7, "a"), order(&second, 3, "a"));
    assert_eq!(look(&first, &here), Look::New);
    first.done(&here, None).unwrap();
    assert_eq!(look(&second, &there), Look::Busy);
    one.commit().unwrap();
    assert!(second.wait_free(&there, Duration::ZERO));
    assert_eq!(decision(look(&second, &there)), (Decision::Duplicate, true));
}

#[test]
fn an_engine_that_ends_lets_the_others_have_what_it_held() {
    let store = Arc::<MemoryStore>::default();
    let (one, two) = (engine_on(&store), engine_on(&store));
    let first = one.lease(&orders(0)).unwrap();
    let second = two.lease(&orders(1)).unwrap();
    let (here, there) = (order(&first, 7, "a"), order(&second, 3, "a"));
    assert_eq!(look(&first, &here), Look::New);
    drop((one, first));
    assert_eq!(look(&second, &there), Look::New);
}

#[test]
fn a_record_below_the_head_is_refused_and_not_passed_over_in_silence() {
    let engine = engine();
    let mut ledger = engine.lease(&orders(0)).unwrap();
    let (five, four) = (order(&ledger, 5, "five"), order(&ledger, 4, "four"));
    for commits in [false, true] {
        if commits {
            engine.commit().unwrap();
        } else {
            assert_eq!(look(&ledger, &five), Look::New);
            ledger.done(&five, None).unwrap();
            assert_eq!(look(&ledger, &four), Look::New);
        }
        for refused in [
            ledger.done(&four, None),
            ledger.skip(&four),
            // In a unit that is open anyhow it is written with it.
            if commits {
                ledger.skip(&five)
            } else {
                ledger.skip(&four)
            },
        ] {
            let refused = refused.unwrap_err();
            assert!(matches!(refused, StoreError::Misused(_)), "{refused}");
        }
    }
}

#[test]
fn a_unit_that_nobody_commits_is_committed_before_it_is_too_long() {
    let store = Arc::<MemoryStore>::default();
    let engine = engine_on(&store);
    let mut ledger = engine.lease(&orders(0)).unwrap();
    for offset in 0..4 {
        let candidate = order(&ledger, offset, &format!("key-{offset}"));
        assert_eq!(look(&ledger, &candidate), Look::New);
        let result = vec![0; 48 << 10].into_boxed_slice();
        ledger.done(&candidate, Some(result)).unwrap();
    }
    assert_eq!(ledger.finish().unwrap().unwrap().next.get(), 4);
    let first = store.unit_behind(ledger_id(&engine), Place::default());
    assert_eq!(first.unwrap().unwrap().1.next.get(), 2);
}

fn ledger_id(engine: &Engine) -> idempotent_consumer::store::PartitionId {
    engine.lease(&orders(0)).unwrap().lease().id
}
