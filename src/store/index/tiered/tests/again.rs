//! Keys that are done once more behind the expiry of their first mark.

use super::*;

/// Ten keys that no other unit has.
fn others(at: u64) -> Vec<(u64, u8)> {
    (0..10).map(|number| (1000 + at * 10 + number, 0)).collect()
}

fn known(index: &Index, number: u64) -> Option<i64> {
    let mut found = Vec::new();
    index.lookup(&[key(number)], &mut found).unwrap();
    found[0].map(|mark| mark.offset)
}

#[test]
fn a_merge_keeps_the_mark_that_counts_and_not_the_older_one_that_has_expired() {
    let parent = tempfile::tempdir().unwrap();
    let mut pair = Pair::open(parent.path(), Vec::new());
    let with_seven = |at| [vec![(7, 0)], others(at)].concat();
    pair.commit(&with_seven(0));
    pair.commit(&others(1));
    pair.settle();
    assert_eq!(known(&pair.index, 7), Some(0));
    // The unit of the other keys holds their run.
    let floor = pair.log[1].previous;
    let dropped = pair.log[..1].iter();
    pair.index.expire(PartitionId(0), floor, dropped).unwrap();
    assert_eq!(known(&pair.index, 7), None);
    pair.commit(&with_seven(2));
    for at in 3..10 {
        pair.commit(&others(at));
        pair.settle();
        assert_eq!(known(&pair.index, 7), Some(200), "unit {at}");
    }
    assert!(numbers(parent.path()).len() < 5, "nothing was merged");
}

#[test]
fn in_one_table_a_mark_that_counts_takes_the_place_of_one_that_does_not() {
    let parent = tempfile::tempdir().unwrap();
    let index = Index::open(parent.path(), STORE, SMALL).unwrap().0;
    index.insert(&unit(0, &[(7, 0)]));
    // Its unit is not among those that were dropped: it was done late, and is named by a later one.
    let floor = NextOffset::after(99);
    let none = std::iter::empty();
    index.expire(PartitionId(0), floor, none).unwrap();
    assert_eq!(known(&index, 7), None);
    index.insert(&unit(5, &[(7, 2)]));
    assert_eq!(known(&index, 7), Some(500));
    // And what is read back below the floor takes nobody's place.
    index.insert(&unit(0, &[(7, 0)]));
    assert_eq!(known(&index, 7), Some(500));
}

#[test]
fn a_floor_never_goes_back() {
    let parent = tempfile::tempdir().unwrap();
    let index = Index::open(parent.path(), STORE, SMALL).unwrap().0;
    index.insert(&unit(3, &[(7, 0)]));
    for at in [500, 100] {
        let floor = NextOffset::new(at).unwrap();
        let none = std::iter::empty();
        index.expire(PartitionId(0), floor, none).unwrap();
        assert_eq!(known(&index, 7), None, "at {at}");
    }
}
