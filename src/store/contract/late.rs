//! Work that is done out of order, and work that is not done at all.

use super::cases::{find, key, orders, owner, unit};
use super::*;

pub(crate) fn gaps(list: &[(i64, i64)]) -> Gaps {
    let mut gaps = Gaps::default();
    for (from, to) in list {
        gaps.open(Gap {
            from: *from,
            to: *to,
            forgotten: false,
        });
    }
    gaps
}

fn at(offset: i64, number: u64) -> Entry {
    Entry {
        fingerprint: key(number),
        offset,
        value_digest: number,
        result: Some(format!("late {offset}").into_bytes().into()),
        dead_lettered: false,
        forgotten: false,
        restored: false,
    }
}

/// A unit up to 10 that leaves 2, 5 and 6 undone, and a unit that does 5.
pub(crate) fn late(lease: &Lease) -> [CommitUnit; 2] {
    let early = unit(lease, 0, 10);
    let entries = early.entries.iter().cloned();
    let early = CommitUnit {
        entries: entries
            .filter(|entry| ![2, 5, 6].contains(&entry.offset))
            .collect(),
        gaps: gaps(&[(2, 3), (5, 7)]),
        ..early
    };
    let filler = CommitUnit {
        entries: vec![at(5, 50)],
        gaps: gaps(&[(2, 3), (6, 7)]),
        ..unit(lease, 10, 10)
    };
    [early, filler]
}

pub(crate) fn what_is_filled_later_is_there_with_its_result(store: &dyn Store) {
    store.bind(&owner()).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    let [early, filler] = late(&lease);
    store.commit(&[early]).unwrap();
    let head = store.heads()[0].1;
    store.commit(&[filler]).unwrap();
    assert_eq!(store.heads()[0].1, head, "a filler moves nothing");
    let later = CommitUnit {
        entries: vec![at(2, 20), at(10, 100)],
        ..unit(&lease, 10, 11)
    };
    store.commit(&[later]).unwrap();
    for (offset, number) in [(5, 50), (2, 20), (10, 100)] {
        let mark = find(store, key(number)).unwrap();
        assert_eq!(mark.offset, offset);
        let result = store.result(&key(number), &mark).unwrap().unwrap();
        assert_eq!(result, format!("late {offset}").into_bytes());
    }
    let mut places = Vec::new();
    let mut place = Place::default();
    while let Some((next, _)) = store.unit_behind(lease.id, place).unwrap() {
        place = next;
        places.push((place.next.get(), place.step));
    }
    assert_eq!(places, [(10, 0), (10, 1), (11, 0)]);
}

pub(crate) fn gaps_are_those_of_the_last_unit(store: &dyn Store) {
    store.bind(&owner()).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    assert!(store.gaps(lease.id).is_empty());
    let [early, filler] = late(&lease);
    assert_eq!(filler.position().get(), 2);
    store.commit(&[early]).unwrap();
    assert_eq!(store.gaps(lease.id), gaps(&[(2, 3), (5, 7)]));
    store.commit(&[filler]).unwrap();
    let again = store.lease(&orders(0)).unwrap();
    assert_eq!(store.gaps(again.id), gaps(&[(2, 3), (6, 7)]));
}

pub(crate) fn a_unit_that_changes_nothing_is_refused(store: &dyn Store) {
    store.bind(&owner()).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    let [early, filler] = late(&lease);
    store.commit(std::slice::from_ref(&early)).unwrap();
    let idle = CommitUnit {
        gaps: early.gaps,
        ..filler.clone()
    };
    let answer = store.commit(&[idle]);
    assert!(matches!(answer, Err(StoreError::NotContiguous { .. })));
    let above = CommitUnit {
        gaps: gaps(&[(9, 11)]),
        ..filler.clone()
    };
    let answer = store.commit(&[above]);
    assert!(matches!(answer, Err(StoreError::Misused(_))), "{answer:?}");
    store.commit(&[filler]).unwrap();
}

pub(crate) fn a_dead_letter_gives_way_to_what_took_effect(store: &dyn Store) {
    store.bind(&owner()).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    let other = store.lease(&orders(1)).unwrap();
    let dead = |lease, previous, next| {
        let mut unit: CommitUnit = unit(lease, previous, next);
        for entry in &mut unit.entries {
            entry.fingerprint = key(7);
            entry.result = None;
            entry.dead_lettered = true;
        }
        unit
    };
    store.commit(&[dead(&lease, 0, 1)]).unwrap();
    let mark = find(store, key(7)).unwrap();
    assert!(mark.dead_lettered && !mark.has_result);
    let done = CommitUnit {
        entries: vec![at(1, 7)],
        ..unit(&lease, 1, 2)
    };
    store.commit(&[done]).unwrap();
    store.commit(&[dead(&other, 0, 1)]).unwrap();
    let mark = find(store, key(7)).unwrap();
    assert_eq!((mark.offset, mark.dead_lettered), (1, false));
}

pub(crate) fn a_forgotten_mark_gives_way_to_every_other(store: &dyn Store) {
    store.bind(&owner()).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    let entry = |offset, dead_lettered, forgotten| Entry {
        dead_lettered,
        forgotten,
        result: None,
        ..at(offset, 7)
    };
    let mut previous = 0;
    let mut mark_after = |entry: Entry| {
        let next = previous + 1;
        let entries = vec![entry];
        let unit = CommitUnit {
            entries,
            ..unit(&lease, previous, next)
        };
        store.commit(&[unit]).unwrap();
        previous = next;
        find(store, key(7)).unwrap()
    };
    let mark = mark_after(entry(0, true, true));
    assert!(mark.forgotten && mark.dead_lettered);
    let mark = mark_after(entry(1, true, false));
    assert_eq!((mark.offset, mark.forgotten), (1, false));
    let mark = mark_after(entry(2, false, true));
    assert_eq!((mark.offset, mark.forgotten), (1, false));
    let mark = mark_after(entry(3, false, false));
    assert_eq!((mark.offset, mark.dead_lettered), (3, false));
    let mark = mark_after(entry(4, false, true));
    assert_eq!((mark.offset, mark.forgotten), (3, false));
}
