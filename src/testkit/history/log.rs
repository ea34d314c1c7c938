//! The events, in the order in which they were told.

use std::collections::BTreeMap;

use super::message::Effect;

/// What a group has committed: the next offset of each partition. A partition that is missing has
/// nothing committed.
pub type Positions = BTreeMap<i32, i64>;

/// One life of a member: from its start to its end, whatever that is. The number counts the lives
/// of all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Run(pub(super) usize);

#[derive(Clone, Debug)]
pub(super) struct Life {
    /// Members of one name have one store.
    pub(super) member: String,
    /// Of the operating system; it may be used again after the end.
    pub(super) process: u32,
    pub(super) crashed: bool,
    pub(super) effects: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Event {
    Began(Run, u64, Effect),
    Applied(Run, u64),
    Failed(Run, u64),
}

/// A time in which the group may not know what a run did: from the moment at which it had
/// committed `positions` at least, to the end of the run or until it is a member in order again.
#[derive(Clone, Debug)]
pub(super) struct Interruption {
    pub(super) run: Run,
    pub(super) from: usize,
    pub(super) to: Option<usize>,
    pub(super) positions: Positions,
}

/// What was reported, in one order over all members. A [`Collector`](super::Collector) fills it;
/// it can be filled by hand as well.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(super) lives: Vec<Life>,
    pub(super) events: Vec<Event>,
    pub(super) interruptions: Vec<Interruption>,
}

impl History {
    /// A member begins a life. All lives of one name are taken to have one store, lives of
    /// different names different ones.
    pub fn start(&mut self, member: &str, process: u32) -> Run {
        self.lives.push(Life {
            member: member.to_owned(),
            process,
            crashed: false,
            effects: 0,
        });
        Run(self.lives.len() - 1)
    }

    /// The latest life that had this process id.
    #[must_use]
    pub fn run_of(&self, process: u32) -> Option<Run> {
        let at = self.lives.iter().rposition(|life| life.process == process);
        at.map(Run)
    }

    /// A handler has begun. The number names this beginning within the run.
    pub fn began(&mut self, run: Run, number: u64, effect: Effect) {
        self.events.push(Event::Began(run, number, effect));
    }

    /// The effect has happened.
    pub fn applied(&mut self, run: Run, number: u64) {
        if let Some(life) = self.lives.get_mut(run.0) {
            life.effects += 1;
        }
        self.events.push(Event::Applied(run, number));
    }

    /// The handler has given up without an effect.
    pub fn failed(&mut self, run: Run, number: u64) {
        self.events.push(Event::Failed(run, number));
    }

    /// The run has ended without order: killed, or by an error of its own. The group had committed
    /// `positions` at some moment before: what lies above may be applied again by another member.
    pub fn crashed(&mut self, run: Run, positions: Positions) {
        if let Some(life) = self.lives.get_mut(run.0) {
            life.crashed = true;
        }
        self.interrupted(run, positions);
    }

    /// From now on the group may take the run for dead while it lives: its process stands still, or
    /// its network does. `positions` as for [`crashed`](History::crashed). Nothing is excused that
    /// one store alone is enough to prevent.
    pub fn interrupted(&mut self, run: Run, positions: Positions) {
        self.interruptions.push(Interruption {
            run,
            from: self.events.len(),
            to: None,
            positions,
        });
    }

    /// The run is a member in order again: it knows which partitions are its own.
    pub fn recovered(&mut self, run: Run) {
        let now = self.events.len();
        let crashed = self.lives.get(run.0).is_some_and(|life| life.crashed);
        for interruption in &mut self.interruptions {
            if interruption.run == run && interruption.to.is_none() && !crashed {
                interruption.to = Some(now);
            }
        }
    }

    /// How many effects have happened, by all members.
    #[must_use]
    pub fn effects(&self) -> usize {
        self.lives.iter().map(|life| life.effects).sum()
    }

    /// How many effects have happened in the lives of one member.
    #[must_use]
    pub fn effects_of(&self, member: &str) -> usize {
        let lives = self.lives.iter().filter(|life| life.member == member);
        lives.map(|life| life.effects).sum()
    }
}
