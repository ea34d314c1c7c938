use super::key::LogKey;
use super::*;
use crate::store::tail::Total;

fn gaps(list: &[(i64, i64, bool)]) -> Gaps {
    let mut gaps = Gaps::default();
    for (from, to, forgotten) in list {
        gaps.open(Gap {
            from: *from,
            to: *to,
            forgotten: *forgotten,
        });
    }
    gaps
}

fn unit() -> CommitUnit {
    let entry = |offset: i64, result: Option<&[u8]>| Entry {
        fingerprint: Fingerprint([offset.to_le_bytes()[0]; 16]),
        offset,
        value_digest: 9,
        result: result.map(Into::into),
        dead_lettered: offset == 12,
        forgotten: offset == 4,
        restored: offset == 499,
    };
    CommitUnit {
        id: PartitionId(3),
        epoch: 2,
        previous: NextOffset::new(10).unwrap(),
        next: NextOffset::new(500).unwrap(),
        max_timestamp_ms: 77,
        anchor: Some(Anchor {
            offset: 499,
            timestamp_ms: 77,
            digest: 5,
        }),
        entries: vec![
            entry(10, None),
            entry(499, Some(b"paid")),
            entry(12, None),
            entry(4, Some(b"")),
        ],
        gaps: gaps(&[(0, 3, true), (3, 4, false), (400, 401, false)]),
        outbox: Vec::new(),
    }
}

fn tail() -> Tail {
    Tail {
        began: NextOffset::new(4).unwrap(),
        clock_ms: 1_700_000_000_000,
        samples_ms: [1_700_000_000_500, -1],
        before: Total {
            entries: 1 << 40,
            bytes: 3,
        },
    }
}

fn moving(unit: CommitUnit) -> Logged {
    Logged {
        place: Place {
            next: unit.next,
            step: 0,
        },
        previous_step: 7,
        unit,
        tail: Some(tail()),
    }
}

/// A unit that only fills gaps.
fn filling() -> Logged {
    let next = NextOffset::new(500).unwrap();
    Logged {
        place: Place { next, step: 8 },
        previous_step: 7,
        unit: CommitUnit {
            previous: next,
            anchor: None,
            gaps: gaps(&[(3, 4, false)]),
            ..unit()
        },
        tail: Some(tail()),
    }
}

fn key_of(logged: &Logged) -> LogKey {
    log_key(logged.unit.id, logged.place)
}

#[test]
fn a_record_comes_back_as_it_went() {
    let bare = CommitUnit {
        anchor: None,
        entries: vec![],
        gaps: Gaps::default(),
        ..unit()
    };
    for logged in [moving(unit()), moving(bare), filling()] {
        let bytes = encode(&logged);
        let spare = encoded_bytes(&logged.unit).checked_sub(bytes.len());
        assert!(spare.is_some_and(|spare| spare < TAIL_BYTES_MAX));
        let old = Logged {
            tail: None,
            ..logged.clone()
        };
        let old_bytes = encode(&old);
        assert_eq!(decode(key_of(&old).as_ref(), &old_bytes), Ok(old));
        assert_eq!(decode(key_of(&logged).as_ref(), &bytes), Ok(logged));
    }
}

#[test]
fn every_changed_bit_and_every_shorter_record_is_refused() {
    for logged in [moving(unit()), filling()] {
        let (key, good) = (key_of(&logged), encode(&logged));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(key.as_ref(), &bad).is_err(), "bit {bit}");
        }
        for len in 0..good.len() {
            assert!(decode(key.as_ref(), &good[..len]).is_err(), "length {len}");
        }
    }
}

#[test]
fn a_record_under_another_key_is_refused() {
    let logged = filling();
    let good = encode(&logged);
    let place = logged.place;
    for key in [
        log_key(PartitionId(4), place),
        log_key(PartitionId(3), Place { step: 9, ..place }),
        log_key(PartitionId(3), Place { step: 0, ..place }),
    ] {
        assert!(decode(key.as_ref(), &good).is_err());
    }
}

#[test]
fn a_record_that_does_not_fit_its_own_place_is_refused() {
    let next = NextOffset::new(500).unwrap();
    let moved = moving(unit());
    let bad = [
        // Fills gaps, and says that it moves.
        Logged {
            place: Place { next, step: 0 },
            ..filling()
        },
        // Moves, and says that it fills.
        Logged {
            place: Place { next, step: 8 },
            ..moved.clone()
        },
        // Leaves a step out.
        Logged {
            previous_step: 6,
            ..filling()
        },
        // Has a gap above its head.
        moving(CommitUnit {
            gaps: gaps(&[(499, 501, false)]),
            ..unit()
        }),
    ];
    for logged in bad {
        assert!(decode(key_of(&logged).as_ref(), &encode(&logged)).is_err());
    }
}

#[test]
fn keys_sort_as_partition_place_and_step() {
    let key = |id, next, step| {
        let next = NextOffset::new(next).unwrap();
        log_key(PartitionId(id), Place { next, step })
    };
    let sorted = [
        key(0, 7, 0),
        key(0, 7, 1),
        key(0, 7, 256),
        key(0, 8, 0),
        key(0, 256, 0),
        key(0, i64::MAX, 0),
        key(1, 0, 0),
    ];
    assert!(sorted.is_sorted_by(|a, b| a.as_ref() < b.as_ref()));
    for key in sorted {
        let (id, place) = parse_log_key(key.as_ref()).unwrap();
        assert_eq!(log_key(id, place), key);
        let behind = log_key_behind(id, place);
        assert!(behind.as_ref() > key.as_ref());
    }
    assert_eq!(parse_log_key(b"short"), None);
    let padded = [key(0, 7, 0).as_ref(), &[0; 4]].concat();
    assert_eq!(parse_log_key(&padded), None, "one place has one key");
}
