//! The index against one table with the same units, with bounds so small that everything happens.

use std::fs;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::store::index::Table;
use crate::store::standing::Standing;
use crate::store::tail::{Moment, Tail, Total};
use crate::store::{Entry, Gaps, Head, Place};

mod again;
mod crashes;
mod damage;

const STORE: &str = "a store";
const SMALL: Bounds = Bounds {
    active_keys: 20,
    closing_keys: 1,
    shard_keys: 16,
};
/// Few, so that most are done more than once.
const KEYS: u64 = 400;

fn key(number: u64) -> Fingerprint {
    // The top halves of two neighbours are equal.
    let top = (number / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Fingerprint(((u128::from(top) << 64) | u128::from(number)).to_be_bytes())
}

/// A unit of the keys, its last offset being `at`.
fn unit(at: i64, keys: &[(u64, u8)]) -> CommitUnit {
    let entries = keys.iter().zip(0..).map(|((number, kind), behind)| Entry {
        fingerprint: key(*number),
        offset: at * 100 + behind,
        value_digest: at.unsigned_abs() << 16 | number,
        result: (*kind == 1).then(|| [7].into()),
        dead_lettered: *kind == 2,
        forgotten: *kind == 3,
        restored: *kind == 4,
    });
    CommitUnit {
        id: PartitionId(0),
        epoch: 1,
        previous: NextOffset::after(at * 100 - 1),
        next: NextOffset::after(at * 100 + 99),
        max_timestamp_ms: -1,
        anchor: None,
        entries: entries.collect(),
        gaps: Gaps::default(),
        outbox: Vec::new(),
    }
}

type Answers = Vec<Option<Mark>>;

/// An index, what it was given, and a table with the same.
struct Pair<'a> {
    directory: &'a Path,
    index: Index,
    log: Vec<CommitUnit>,
    table: Table,
}

fn covered(unit: &CommitUnit) -> Covered {
    let standing = Standing {
        place: Place {
            next: unit.next,
            step: 0,
        },
        head: Head {
            next: unit.next,
            anchor: None,
            max_timestamp_ms: -1,
        },
        gaps: Gaps::default(),
        tail: Tail::first(unit, Moment::Now(1)),
        written: Total::default(),
        expired: Total::default(),
        front: NextOffset::ZERO,
    };
    Covered::from([(unit.id, standing)])
}

impl<'a> Pair<'a> {
    fn open(directory: &'a Path, log: Vec<CommitUnit>) -> Self {
        let (index, reached) = Index::open(directory, STORE, SMALL).unwrap();
        let reached = reached
            .get(&PartitionId(0))
            .map(|reached| reached.place.next);
        let pair = Self {
            directory,
            index,
            table: Table::default(),
            log,
        };
        for unit in &pair.log {
            pair.table.insert(unit, |_, _| true);
            if Some(unit.next) > reached {
                pair.put(unit);
            }
        }
        pair
    }

    fn put(&self, unit: &CommitUnit) {
        self.index.insert(unit);
        if self.index.is_full() {
            self.index.seal(covered(unit)).unwrap();
        }
    }

    fn commit(&mut self, keys: &[(u64, u8)]) {
        let unit = unit(i64::try_from(self.log.len()).unwrap(), keys);
        self.table.insert(&unit, |_, _| true);
        self.put(&unit);
        self.log.push(unit);
    }

    fn reopened(self, in_order: bool) -> Self {
        let covered = self.log.last().map(covered).filter(|_| in_order);
        self.index.close(covered);
        let (directory, log) = (self.directory, self.log);
        drop(self.index);
        Self::open(directory, log)
    }

    /// Waits until nothing is left to be sealed or merged.
    fn settle(&self) {
        while !self.index.is_settled() {
            std::thread::yield_now();
        }
        self.index.check().unwrap();
    }

    fn answers(&self) -> (Answers, Result<Answers, StoreError>) {
        let keys: Vec<_> = (0..KEYS + 10).map(key).collect();
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        self.table.lookup(&keys, &mut expected);
        let answer = self.index.lookup(&keys, &mut found);
        (expected, answer.map(|()| found))
    }

    fn compare(&self) {
        let (expected, found) = self.answers();
        for ((number, expected), found) in expected.iter().enumerate().zip(found.unwrap()) {
            assert_eq!(found, *expected, "key {number}");
        }
    }
}

/// A log of so many units, always the same.
fn log(units: u64) -> Vec<CommitUnit> {
    let keys = |at: u64| (0..7).map(move |number| ((at * 7 + number * 31) % KEYS, (at % 7) as u8));
    let units =
        (0..units).map(|at| unit(i64::try_from(at).unwrap(), &keys(at).collect::<Vec<_>>()));
    units.collect()
}

fn is_run(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "run")
}

fn numbers(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<(u64, u8)>),
    Settle,
    Reopen { in_order: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let commit = prop::collection::vec((0..KEYS, 0_u8..6), 1..30).prop_map(Step::Commit);
    let step = prop_oneof![
        12 => commit,
        2 => Just(Step::Settle),
        1 => any::<bool>().prop_map(|in_order| Step::Reopen { in_order }),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_index_answers_as_one_table_does(steps in steps()) {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("index");
        let mut pair = Pair::open(&directory, Vec::new());
        for step in steps {
            match step {
                Step::Commit(keys) => pair.commit(&keys),
                Step::Settle => pair.settle(),
                Step::Reopen { in_order } => pair = pair.reopened(in_order),
            }
            pair.compare();
        }
    }
}

#[test]
fn after_a_close_in_order_nothing_is_read_from_the_log() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("index");
    let pair = Pair::open(&directory, log(50)).reopened(true);
    let (_, covered) = Index::open(&directory, STORE, SMALL).unwrap();
    assert_eq!(covered[&PartitionId(0)].place.next, pair.log[49].next);
    assert_eq!(pair.index.sealer.current.get().active.len(), 0);
    pair.compare();
}

#[test]
fn many_runs_become_few_and_their_files_are_removed() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("index");
    let mut pair = Pair::open(&directory, Vec::new());
    for at in 0..300 {
        let keys: Vec<_> = (0..20).map(|number| (at * 20 + number, 0)).collect();
        pair.commit(&keys);
        pair.settle();
        pair.compare();
    }
    let files = numbers(&directory);
    assert!(files.len() <= 14, "{files:?}");
    assert_eq!(pair.index.len(), 300 * 20);
    assert_eq!(pair.reopened(true).index.len(), 300 * 20);
}

#[test]
fn marks_below_a_floor_do_not_count_and_runs_of_nothing_else_are_dropped() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("index");
    let mut pair = Pair::open(&directory, Vec::new());
    for at in 0..40 {
        pair.commit(
            &(0..20)
                .map(|number| (at * 20 + number, 0))
                .collect::<Vec<_>>(),
        );
        pair.settle();
    }
    let before = pair.index.len();
    // The units up to the 19th.
    let floor = pair.log[20].previous;
    let dropped = pair.log[..20].iter();
    pair.index.expire(PartitionId(0), floor, dropped).unwrap();
    let mut found = Vec::new();
    let keys: Vec<_> = (0..800).map(key).collect();
    pair.index.lookup(&keys, &mut found).unwrap();
    assert!(found[..400].iter().all(Option::is_none));
    assert!(found[400..].iter().all(Option::is_some));
    pair.settle();
    assert!(pair.index.len() < before, "whole runs are dropped");
    // All.
    let (front, dropped) = (pair.log[39].next, pair.log.iter());
    pair.index.expire(PartitionId(0), front, dropped).unwrap();
    pair.settle();
    assert_eq!(pair.index.len(), 0);
    assert!(numbers(&directory).iter().all(|name| !is_run(name)));
}

#[test]
fn commits_wait_where_keys_come_faster_than_they_are_sealed() {
    let directory = tempfile::tempdir().unwrap();
    let (index, _) = Index::open(directory.path(), STORE, SMALL).unwrap();
    let keys =
        |at: i64, from: u64, to: u64| unit(at, &(from..to).map(|key| (key, 0)).collect::<Vec<_>>());
    let first = keys(0, 0, 20);
    index.insert(&first);
    // To be sealed, but nobody is there who would.
    index.freeze(covered(&first));
    index.insert(&keys(1, 100, 179));
    index.wait_while_crowded();
    index.insert(&keys(2, 179, 180));
    let (done, waited) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            index.wait_while_crowded();
            done.send(()).unwrap();
        });
        let early = waited.recv_timeout(Duration::from_millis(100));
        assert!(
            early.is_err(),
            "80 keys beside a table that is being sealed"
        );
        index.sealer.seal_pending().unwrap();
        waited.recv_timeout(Duration::from_secs(60)).unwrap();
    });
    index.insert(&keys(3, 180, 200));
    index.wait_while_crowded();
}
