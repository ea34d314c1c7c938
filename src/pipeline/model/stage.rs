//! What the threads of a consumer and the test share.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::cluster::{Cluster, Identity};
use super::history::{Given, Handled, History, Marks, may_commit};
use super::op::{Attempt, PARTITIONS, Pace};
use crate::engine::Committed;
use crate::pipeline::Ordering;
use crate::store::Store;
use crate::testkit::FaultStore;

/// The store under test.
pub(super) type Faulty = FaultStore<Arc<dyn Store>>;

/// How long anything may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(90);

/// What the group tells its member.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Assign(Vec<usize>),
    Revoke(Vec<usize>, bool),
}

/// A partition in the member's hands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// Where its reader stands.
    pub(super) next: i64,
    /// The reader has asked and found nothing: all before is decided about.
    pub(super) idle: bool,
    /// It is about to end: no reader waits for records any more.
    pub(super) closing: bool,
}

/// All that changes.
#[derive(Default)]
pub(super) struct World {
    pub(super) cluster: Cluster,
    pub(super) history: History,
    pub(super) marks: Option<Marks>,
    pub(super) store: Option<Arc<Faulty>>,
    pub(super) attempts: HashMap<Identity, VecDeque<Attempt>>,
    pub(super) commands: VecDeque<Command>,
    pub(super) given: [Option<Given>; PARTITIONS],
    pub(super) reading: [Option<Reading>; PARTITIONS],
    pub(super) refusals: VecDeque<bool>,
    pub(super) broken: Option<usize>,
    pub(super) in_hand: usize,
    /// The offset handled last of each partition, or of each record key in it.
    pub(super) handled: HashMap<(usize, Vec<u8>), i64>,
    pub(super) pace: Pace,
    ticks: u64,
    /// When each record was last handed to a lane, in ticks.
    pub(super) read_at: HashMap<(usize, i64), u64>,
    /// Partitions that the session held at some time.
    pub(super) touched: HashSet<usize>,
    /// Attempts that were told to fail in this session.
    pub(super) failures: usize,
    /// Reading or leaving was told to fail in this session.
    pub(super) source_failed: bool,
    /// The session is over.
    pub(super) ended: bool,
    pub(super) violation: Option<String>,
    /// What happened, for whoever reads a failure.
    pub(super) log: Vec<String>,
}

impl World {
    /// Counts what has an order of its own: assignments and reads.
    pub(super) fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    pub(super) fn violated(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// Whether the process counts as dead: nothing it does from here on is seen.
    pub(super) fn is_dead(&self) -> bool {
        self.store.as_ref().is_none_or(|store| store.has_crashed())
    }

    /// The group takes positions in. Says whether it agrees.
    pub(super) fn commit(&mut self, positions: &[Committed]) -> bool {
        if self.is_dead() || positions.is_empty() {
            return true;
        }
        let refusal = self.refusals.pop_front();
        self.log.push(format!("commit {positions:?} {refusal:?}"));
        if refusal != Some(false) {
            for committed in positions {
                self.take_position(committed);
            }
        }
        refusal.is_none()
    }

    fn take_position(&mut self, committed: &Committed) {
        let partition = usize::try_from(committed.partition.partition()).unwrap();
        let next = committed.next.get();
        let Some(marks) = &self.marks else { return };
        let verdict = if self.given[partition].is_none() {
            Err(format!("a position of {partition} that is not assigned"))
        } else if self.cluster.logs[partition].changed {
            // What was left undone lies before the record that shows the change.
            Ok(())
        } else {
            may_commit(&self.cluster, partition, next, marks, &self.history)
        };
        match verdict {
            Ok(()) => self.cluster.committed[partition] = Some(next),
            Err(why) => self.violated(why),
        }
    }

    /// Notes the order in which records are handled, and says what is wrong with it.
    pub(super) fn in_order(&mut self, handled: &Handled) {
        let group = match self.pace.order {
            Ordering::Partition => Vec::new(),
            Ordering::Key => handled.record_key.clone(),
            Ordering::Unordered => return,
        };
        let place = (handled.partition, group);
        let last = self.handled.insert(place, handled.offset);
        if last.is_some_and(|last| last >= handled.offset) {
            self.violated(format!("{handled:?} behind {last:?}"));
        }
    }

    /// Whether everything readable is decided about and no handler runs.
    pub(super) fn is_settled(&self) -> bool {
        let quiet = self.reading.iter().zip(&self.cluster.logs);
        let mut quiet = quiet.filter_map(|(reading, log)| Some((reading.as_ref()?, log)));
        let unhandled = self.unhandled();
        let mut unhandled = unhandled.iter().map(|(partition, ..)| *partition);
        self.commands.is_empty()
            && self.in_hand == 0
            && quiet.all(|(reading, log)| reading.idle && log.from(reading.next).is_none())
            && unhandled.all(|partition| self.reading[partition].is_none())
    }

    /// Whether every effect is durable.
    pub(super) fn is_durable(&self) -> bool {
        let marks = self.marks.as_ref();
        marks.is_none_or(|marks| self.history.is_durable(marks))
    }
}

/// The world behind its lock.
#[derive(Default)]
pub(super) struct Stage {
    world: Mutex<World>,
    changed: Condvar,
}

impl Stage {
    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self) {
        self.changed.notify_all();
    }

    /// Gives the world up for a moment, until something changes.
    pub(super) fn pause<'a>(&self, world: MutexGuard<'a, World>) -> MutexGuard<'a, World> {
        let moment = Duration::from_millis(1);
        let waited = self.changed.wait_timeout(world, moment);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits for a condition.
    pub(super) fn wait_for(&self, what: &str, mut holds: impl FnMut(&World) -> bool) {
        let end = Instant::now() + PATIENCE;
        let mut world = self.world();
        while !holds(&world) {
            if Instant::now() > end {
                world.violated(format!("waited {PATIENCE:?} for {what}"));
                return;
            }
            world = self.pause(world);
        }
    }
}
