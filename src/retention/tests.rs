//! What expires, and what does not, in every store that needs nothing but this machine.

mod caps;
mod clocks;

use super::*;
use std::ops::Range;
use std::sync::Arc;

use crate::key::Fingerprint;
use crate::record::{NextOffset, TopicPartition};
use crate::store::{
    Anchor, CommitUnit, Entry, Expiry, Gap, Gaps, Lease, MemoryStore, Owner, Retained, Store,
};
use crate::testkit::ManualClock;

const HOUR: Duration = Duration::from_secs(3_600);
const HOUR_MS: i64 = 3_600_000;
const BEGAN_MS: i64 = 1_700_000_000_000;
/// Records of one unit.
const EACH: i64 = 10;

fn at(offset: i64) -> NextOffset {
    NextOffset::new(offset).unwrap()
}

fn key(lease: &Lease, offset: i64) -> Fingerprint {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&offset.to_be_bytes());
    bytes[8..12].copy_from_slice(&lease.id.0.to_be_bytes());
    Fingerprint::new(bytes)
}

fn entry(lease: &Lease, offset: i64) -> Entry {
    Entry {
        fingerprint: key(lease, offset),
        offset,
        value_digest: 0,
        result: None,
        dead_lettered: false,
        forgotten: false,
        restored: false,
    }
}

/// Unit `number` of a partition, whose records all have one time.
fn unit(lease: &Lease, number: i64, time_ms: i64) -> CommitUnit {
    let offsets = number * EACH..(number + 1) * EACH;
    CommitUnit {
        id: lease.id,
        epoch: lease.epoch,
        previous: at(offsets.start),
        next: at(offsets.end),
        max_timestamp_ms: time_ms,
        anchor: Some(Anchor {
            offset: offsets.end - 1,
            timestamp_ms: time_ms,
            digest: 1,
        }),
        entries: offsets.map(|offset| entry(lease, offset)).collect(),
        gaps: Gaps::default(),
        outbox: Vec::new(),
    }
}

/// A store and its clock, which runs a year ahead of the first record.
struct Kit {
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    /// On the disk until the test is over.
    _directory: Option<tempfile::TempDir>,
}

impl Kit {
    fn lease(&self, partition: i32) -> Lease {
        let name = TopicPartition::new("orders", partition);
        self.store.lease(&name).unwrap()
    }

    fn commit(&self, unit: CommitUnit) {
        self.store.commit(&[unit]).unwrap();
    }

    /// Units of which each is an hour later than the one before.
    fn hours(&self, lease: &Lease, hours: Range<i64>) {
        for hour in hours {
            self.commit(unit(lease, hour, BEGAN_MS + hour * HOUR_MS));
        }
    }

    fn sweeper(&self, retention: Retention) -> Sweeper {
        Sweeper::new(Arc::clone(&self.store), retention).unwrap()
    }

    /// A sweep that takes every clock as it is.
    fn sweep(&self, retention: Retention) -> Swept {
        self.sweeper(retention).sweep().unwrap()
    }

    /// The offsets of the first `to` that have a mark.
    fn known(&self, lease: &Lease, to: i64) -> Vec<i64> {
        let keys: Vec<_> = (0..to).map(|offset| key(lease, offset)).collect();
        let mut found = Vec::new();
        self.store.lookup(&keys, &mut found).unwrap();
        let known = (0..to).zip(found).filter(|(_, mark)| mark.is_some());
        known.map(|(offset, _)| offset).collect()
    }

    fn retained(&self, lease: &Lease) -> Retained {
        let list = self.store.retaining().unwrap().retained().unwrap();
        list.into_iter().find(|one| one.id == lease.id).unwrap()
    }
}

fn bound(
    store: Arc<dyn Store>,
    clock: &Arc<ManualClock>,
    directory: Option<tempfile::TempDir>,
) -> Kit {
    let owner = Owner {
        group: "g".into(),
        recipe: "record-key".into(),
        scope: "topic".into(),
    };
    store.bind(&owner).unwrap();
    Kit {
        store,
        clock: Arc::clone(clock),
        _directory: directory,
    }
}

/// Runs a case on every kind of store.
fn each(case: impl Fn(&Kit)) {
    let clock = || Arc::new(ManualClock::new(BEGAN_MS + 365 * 24 * HOUR_MS));
    let memory = clock();
    let store = MemoryStore::with_clock(Arc::clone(&memory) as _);
    case(&bound(Arc::new(store), &memory, None));
    #[cfg(feature = "sled")]
    {
        let (clock, directory) = (clock(), tempfile::tempdir().unwrap());
        let options = crate::store::SledStore::options()
            .durability(crate::store::Durability::None)
            .clock(Arc::clone(&clock) as _);
        let store = options.open(directory.path().join("seen")).unwrap();
        case(&bound(Arc::new(store), &clock, Some(directory)));
    }
    #[cfg(feature = "redb")]
    {
        let (clock, directory) = (clock(), tempfile::tempdir().unwrap());
        let options = crate::store::RedbStore::options().clock(Arc::clone(&clock) as _);
        let store = options.open(directory.path().join("seen")).unwrap();
        case(&bound(Arc::new(store), &clock, Some(directory)));
    }
}

#[test]
fn what_is_older_than_is_kept_goes_from_the_front_and_nothing_else() {
    each(|kit| {
        let (one, other) = (kit.lease(0), kit.lease(1));
        kit.hours(&one, 0..10);
        kit.hours(&other, 0..1);
        // The clock stands where three agree: at 7.
        let swept = kit.sweep(Retention::for_duration(4 * HOUR));
        assert_eq!((swept.expired.keys, swept.expired.units), (30, 3));
        assert_eq!(kit.known(&one, 100), (30..100).collect::<Vec<_>>());
        assert_eq!(kit.known(&other, 10).len(), 10);
        assert_eq!(kit.store.retained_from(one.id), at(30));
        assert_eq!(kit.store.retained_from(other.id), at(0));
        let first = kit
            .store
            .unit_behind(one.id, crate::store::Place::default());
        assert_eq!(first.unwrap().unwrap().0.next, at(40));
        let again = kit.sweep(Retention::for_duration(4 * HOUR));
        assert_eq!(again, Swept::default());
        assert_eq!(kit.retained(&one).usage.entries, 70);
        // The work goes on where it was.
        kit.hours(&one, 10..11);
    });
}

#[test]
fn a_key_is_kept_for_at_least_the_whole_duration() {
    each(|kit| {
        let lease = kit.lease(0);
        for hour in 0..40 {
            kit.hours(&lease, hour..hour + 1);
            kit.sweep(Retention::for_duration(5 * HOUR));
            // A copy that comes now is from `hour` at the latest.
            let needed = (hour - 5).max(0) * EACH..(hour + 1) * EACH;
            let known = kit.known(&lease, (hour + 1) * EACH);
            assert!(
                needed.clone().all(|offset| known.contains(&offset)),
                "{hour}: {known:?}"
            );
        }
        assert!(
            kit.store.retained_from(lease.id) > at(250),
            "and not for ever"
        );
    });
}

#[test]
fn nothing_goes_above_what_is_not_done_or_not_committed_and_never_the_last_unit() {
    each(|kit| {
        let lease = kit.lease(0);
        let mut gaps = Gaps::default();
        gaps.open(Gap {
            from: 35,
            to: 36,
            forgotten: false,
        });
        kit.hours(&lease, 0..3);
        for number in 3..8 {
            let gaps = gaps.clone();
            let unit = unit(&lease, number, BEGAN_MS + number * 100 * HOUR_MS);
            kit.commit(CommitUnit { gaps, ..unit });
        }
        let mut sweeper = kit.sweeper(Retention::for_duration(Duration::ZERO));
        let everything = Expiry {
            id: lease.id,
            older_than_ms: i64::MAX,
            below: at(80),
            entries: u64::MAX,
            bytes: u64::MAX,
        };
        let store = kit.store.retaining().unwrap();
        assert_eq!(store.would_expire(&everything).unwrap(), 30);
        // The group has committed 20 alone.
        let swept = sweeper.sweep_below(&|_| at(20), &mut || true).unwrap();
        assert_eq!(swept.expired.units, 2);
        // And whoever asks gets no more than what lies below the gap.
        assert_eq!(store.expire(&everything).unwrap().units, 1);
        assert_eq!(sweeper.sweep().unwrap(), Swept::default());
        assert_eq!(kit.store.retained_from(lease.id), at(30));
        kit.commit(unit(&lease, 8, BEGAN_MS + 800 * HOUR_MS));
        kit.sweep(Retention::max_entries(1).at_cap(AtCap::ShrinkWindow));
        assert_eq!(kit.known(&lease, 90), (80..90).collect::<Vec<_>>());
        let head = kit.lease(0).head.unwrap();
        assert_eq!((head.next, head.anchor.unwrap().offset), (at(90), 89));
    });
}

#[test]
fn units_that_end_at_one_offset_go_together() {
    each(|kit| {
        let lease = kit.lease(0);
        let gap = |from: i64, to: i64| {
            let mut gaps = Gaps::default();
            gaps.open(Gap {
                from,
                to,
                forgotten: false,
            });
            gaps
        };
        let late = |offset, gaps, time_ms| CommitUnit {
            previous: at(10),
            entries: vec![entry(&lease, offset)],
            anchor: None,
            gaps,
            ..unit(&lease, 0, time_ms)
        };
        let mut first = unit(&lease, 0, BEGAN_MS);
        first.entries.retain(|entry| entry.offset >= 2);
        kit.commit(CommitUnit {
            gaps: gap(0, 2),
            ..first
        });
        kit.commit(late(1, gap(0, 1), BEGAN_MS));
        // From hours later, and so the first unit stays with it.
        kit.commit(late(0, Gaps::default(), BEGAN_MS + 7 * HOUR_MS));
        kit.hours(&lease, 1..11);
        assert_eq!(
            kit.sweep(Retention::for_duration(4 * HOUR)),
            Swept::default()
        );
        kit.hours(&lease, 11..16);
        assert_eq!(
            kit.sweep(Retention::for_duration(4 * HOUR)).expired.units,
            11
        );
        assert_eq!(kit.known(&lease, 160).first(), Some(&90));
    });
}

#[test]
fn a_result_that_has_expired_since_it_was_found_is_none() {
    each(|kit| {
        let lease = kit.lease(0);
        let mut first = unit(&lease, 0, BEGAN_MS);
        first.entries[3].result = Some(b"paid".as_slice().into());
        kit.commit(first);
        kit.hours(&lease, 1..9);
        let mut found = Vec::new();
        kit.store.lookup(&[key(&lease, 3)], &mut found).unwrap();
        let mark = found[0].unwrap();
        let result = || kit.store.result(&key(&lease, 3), &mark).unwrap();
        assert_eq!(result().unwrap(), b"paid");
        kit.sweep(Retention::for_duration(HOUR));
        assert_eq!(result(), None);
    });
}
