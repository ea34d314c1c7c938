//! Claims: who lets go of a key, and when.

use super::*;

#[test]
fn a_copy_that_is_given_up_leaves_the_claim_of_its_first() {
    let engine = engine();
    let mut here = engine.lease(&orders(0)).unwrap();
    let there = engine.lease(&orders(1)).unwrap();
    let (first, copy) = (order(&here, 0, "a"), order(&here, 1, "a"));
    let third = order(&there, 0, "a");
    assert_eq!(look(&here, &first), Look::New);
    here.hold(&first);
    assert_eq!(look(&here, &copy), Look::Busy);
    here.hold(&copy);
    // As a lane does with what it has parked, while the first is being handled.
    here.release(&copy);
    assert_eq!(look(&there, &third), Look::Busy, "the first is under way");
}

#[test]
fn what_is_held_stays_claimed_when_a_newer_lease_takes_the_partition() {
    let engine = engine();
    let mut late = engine.lease(&orders(0)).unwrap();
    let first = order(&late, 0, "a");
    assert_eq!(look(&late, &first), Look::New);
    late.hold(&first);
    // Its handler runs on: the drain limit was over.
    let _newer = engine.lease(&orders(0)).unwrap();
    let there = engine.lease(&orders(1)).unwrap();
    let copy = order(&there, 0, "a");
    let while_it_runs = look(&there, &copy);
    there.release(&copy);
    assert!(late.done(&first, None).is_err(), "fenced");
    let after_its_effect = look(&there, &copy);
    assert_eq!((while_it_runs, after_its_effect), (Look::Busy, Look::Busy));
}

#[test]
fn a_dead_letter_of_a_lease_that_is_over_does_not_block_its_record_for_ever() {
    let engine = engine();
    let mut late = engine.lease(&orders(0)).unwrap();
    let first = order(&late, 0, "a");
    assert_eq!(look(&late, &first), Look::New);
    let newer = engine.lease(&orders(0)).unwrap();
    assert_eq!(look(&newer, &first), Look::Busy);
    assert!(late.dead_lettered(&first).is_err(), "fenced");
    drop(late);
    assert_eq!(look(&newer, &first), Look::New, "only for the same record");
}

#[test]
fn a_lease_by_another_engine_on_the_store_costs_no_other_partition_its_marks() {
    let store = Arc::<MemoryStore>::default();
    let (one, two) = (engine_on(&store), engine_on(&store));
    let mut lost = one.lease(&orders(0)).unwrap();
    let mut kept = one.lease(&orders(1)).unwrap();
    let (late, fine) = (order(&lost, 0, "a"), order(&kept, 0, "b"));
    assert_eq!(look(&lost, &late), Look::New);
    assert_eq!(look(&kept, &fine), Look::New);
    lost.done(&late, None).unwrap();
    kept.done(&fine, None).unwrap();
    let _newer = two.lease(&orders(0)).unwrap();
    let answer = one.commit();
    assert!(
        matches!(decision(look(&kept, &fine)), (_, true)),
        "the effect of another partition has no mark: {answer:?}"
    );
}
