//! What took effect, and whether it was allowed to.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::cluster::{Cluster, Identity};
use super::op::PARTITIONS;
use crate::TopicPartition;
use crate::key::{self, Fingerprint, Fingerprinter, HashKey, Scope};
use crate::record::NextOffset;
use crate::store::{PartitionId, Store};

pub(super) const TOPIC: &str = "orders";
pub(super) const GROUP: &str = "shop";

/// What the store underneath knows, asked past the consumer.
pub(super) struct Marks {
    pub(super) store: Arc<dyn Store>,
    hasher: Fingerprinter,
}

impl Marks {
    pub(super) fn new(store: Arc<dyn Store>, hash_key: &HashKey) -> Self {
        let at = TopicPartition::new(TOPIC, 0);
        let hasher = Fingerprinter::new(hash_key, GROUP, Scope::Topic, &at);
        Self { store, hasher }
    }

    pub(super) fn id(&self, partition: usize) -> Option<PartitionId> {
        let is_it = |name: &TopicPartition| usize::try_from(name.partition()) == Ok(partition);
        let place = self.store.heads().iter().position(|(name, _)| is_it(name));
        place
            .and_then(|place| u32::try_from(place).ok())
            .map(PartitionId)
    }

    pub(super) fn head(&self, partition: usize) -> Option<i64> {
        let id = self.id(partition)?.0 as usize;
        let (_, head) = self.store.heads().into_iter().nth(id)?;
        head.map(|head| head.next.get())
    }

    /// Below it everything is done.
    pub(super) fn position(&self, partition: usize) -> Option<i64> {
        let gaps = self.store.gaps(self.id(partition)?);
        let first = gaps.first().map(NextOffset::get);
        first.or_else(|| self.head(partition))
    }

    /// Whether the offset lies below the head and in none of its gaps.
    fn has_passed(&self, partition: usize, offset: i64) -> bool {
        let gaps = self.id(partition).map(|id| self.store.gaps(id));
        self.head(partition).is_some_and(|head| head > offset)
            && gaps.is_none_or(|gaps| gaps.at(offset).is_none())
    }

    /// Whether the record is done as far as the store knows.
    pub(super) fn has(&self, identity: Identity, partition: usize, offset: i64) -> bool {
        let Some(fingerprint) = self.fingerprint(identity) else {
            return self.has_passed(partition, offset);
        };
        let mut found = Vec::new();
        self.store.lookup(&[fingerprint], &mut found).unwrap();
        found[0].is_some()
    }

    fn fingerprint(&self, identity: Identity) -> Option<Fingerprint> {
        let Identity::Key(key) = identity else {
            return None;
        };
        let name = format!("key-{key}").into_bytes();
        let identity = key::Identity::Bytes(name.as_slice().into());
        Some(self.hasher.fingerprint(&identity))
    }
}

/// Who had an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The consumer under test, in this session.
    Session(u32),
    /// Another member.
    Elsewhere,
}

#[derive(Clone, Copy, Debug)]
struct Effect {
    by: By,
    partition: usize,
    offset: i64,
    /// Retention has dropped its mark.
    expired: bool,
}

/// One record as its handler has it in hand.
#[derive(Debug)]
pub(super) struct Handled {
    pub(super) identity: Identity,
    pub(super) partition: usize,
    pub(super) offset: i64,
    pub(super) in_doubt: bool,
    pub(super) token: String,
    pub(super) record_key: Vec<u8>,
    /// When its batch was read, in ticks of the world.
    pub(super) read_at: u64,
}

/// What the consumer was given when it took a partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    /// The group's position then.
    pub(super) committed: Option<i64>,
    /// Below it the store knew everything as done.
    pub(super) position: Option<i64>,
    /// When its answer was in, in ticks of the world: what is read from then on, in whatever
    /// partition, is decided about with all keys below `committed`.
    pub(super) since: Option<u64>,
}

impl Given {
    /// Whether another member was there last.
    pub(super) fn is_behind(&self) -> bool {
        self.committed > Some(self.position.unwrap_or(0))
    }
}

/// Everything that took effect on the present store.
#[derive(Default)]
pub(super) struct History {
    effects: HashMap<Identity, Vec<Effect>>,
    tokens: HashMap<Identity, String>,
    /// Effects of each partition whose marks were not seen yet.
    unmarked: [Vec<(Identity, i64, u32)>; PARTITIONS],
    /// Partitions that a session ever held when it ended without order, that another member was
    /// ahead on, or whose handler panicked: doubt may last for more than one lease.
    pub(super) disorder: HashSet<usize>,
    /// Keys that retention ever dropped: a record of one that was passed over has no mark any more.
    gone: HashSet<Identity>,
    pub(super) session: u32,
    pub(super) uncommitted_records_max: usize,
}

impl History {
    /// Whether something took effect for it.
    pub(super) fn knows(&self, identity: Identity) -> bool {
        self.effects.contains_key(&identity)
    }

    /// Retention has dropped units with these keys. Says which are not known any more.
    pub(super) fn expired(&mut self, keys: &[Fingerprint], marks: &Marks) -> Vec<Identity> {
        let mut gone = Vec::new();
        for (identity, effects) in &mut self.effects {
            let key = marks.fingerprint(*identity);
            if !key.is_some_and(|key| keys.contains(&key)) || marks.has(*identity, 0, 0) {
                continue;
            }
            gone.push(*identity);
            for effect in effects {
                effect.expired = true;
            }
        }
        self.gone.extend(&gone);
        gone
    }

    /// Another member handles a record, or passes it over as done: its key counts as done either
    /// way, once it is known here what that member did.
    pub(super) fn elsewhere(&mut self, identity: Identity, partition: usize, offset: i64) {
        self.effects.entry(identity).or_default().push(Effect {
            by: By::Elsewhere,
            partition,
            offset,
            expired: false,
        });
    }

    /// The handler's effect happens. Says what is wrong with it.
    pub(super) fn effect(
        &mut self,
        handled: &Handled,
        cluster: &Cluster,
        given: &[Option<Given>; PARTITIONS],
        marks: &Marks,
    ) -> Result<(), String> {
        let Handled {
            identity,
            partition,
            offset,
            in_doubt,
            ref token,
            ..
        } = *handled;
        let own = given[partition].ok_or_else(|| format!("{handled:?} without an assignment"))?;
        // A mark may come while its handler runs: of an effect elsewhere, read back meanwhile.
        let mut earlier = self.effects.get(&identity).into_iter().flatten();
        let may_come = earlier.any(|earlier| earlier.by == By::Elsewhere);
        if marks.has(identity, partition, offset) && !may_come {
            return Err(format!("{handled:?} although the store knows it as done"));
        }
        let known = self.tokens.entry(identity).or_insert_with(|| token.clone());
        if known != token {
            return Err(format!("{handled:?} had the token {known} before"));
        }
        if in_doubt && !own.is_behind() && !self.disorder.contains(&partition) {
            return Err(format!("{handled:?}, but nothing ever ended without order"));
        }
        let effects = self.effects.entry(identity).or_default();
        let gone = self.gone.contains(&identity);
        for earlier in effects.iter() {
            Self::second((self.session, gone), earlier, handled, cluster, given)
                .map_err(|why| format!("a second effect, {why}: {handled:?} after {earlier:?}"))?;
        }
        effects.push(Effect {
            by: By::Session(self.session),
            partition,
            offset,
            expired: false,
        });
        let (unmarked, gone) = (&mut self.unmarked[partition], &self.gone);
        unmarked.retain(|(identity, offset, session)| {
            let marked = marks.has(*identity, partition, *offset) || gone.contains(identity);
            *session == self.session && !marked
        });
        unmarked.push((identity, offset, self.session));
        if unmarked.len() > self.uncommitted_records_max {
            return Err(format!(
                "{} effects without marks, the limit is {}: {unmarked:?}",
                unmarked.len(),
                self.uncommitted_records_max
            ));
        }
        Ok(())
    }

    /// Whether a second effect may follow `earlier`, whose mark the store does not have. `gone` says
    /// that retention has dropped one of its key.
    fn second(
        (session, gone): (u32, bool),
        earlier: &Effect,
        handled: &Handled,
        cluster: &Cluster,
        given: &[Option<Given>; PARTITIONS],
    ) -> Result<(), &'static str> {
        let place = (earlier.partition, earlier.offset);
        if earlier.expired {
            match earlier.by {
                _ if place != (handled.partition, handled.offset) => return Ok(()),
                By::Session(_)
                    if given[earlier.partition].and_then(|given| given.position)
                        > Some(earlier.offset) =>
                {
                    return Err("of the very record, below what is done");
                }
                // Never marked here, perhaps: another record with its key has expired.
                By::Session(_) | By::Elsewhere => {}
            }
        }
        let there = cluster.logs[earlier.partition].has(earlier.offset, handled.identity);
        match earlier.by {
            By::Session(of) if of == session => Err("in one session"),
            // Sessions that end in order leave nothing unmarked: it is looked for at their end.
            By::Session(_) => {
                let same =
                    (earlier.partition, earlier.offset) == (handled.partition, handled.offset);
                if same && !handled.in_doubt {
                    return Err("not announced in doubt");
                }
                Ok(())
            }
            // What lies below the group's position when the partition is taken is read for its
            // keys first; what the topic no longer holds cannot be.
            By::Elsewhere => {
                let given = given[earlier.partition].filter(|given| {
                    let since = given.since.unwrap_or(u64::MAX);
                    // As a copy it was passed over here before, and its first has expired since.
                    let passed = gone && given.position > Some(earlier.offset);
                    given.committed > Some(earlier.offset) && handled.read_at > since && !passed
                });
                if there && given.is_some() {
                    return Err("although the group's position was behind the first");
                }
                Ok(())
            }
        }
    }

    /// A session has ended and said that all of its effects are marked.
    pub(super) fn ended_in_order(&self, marks: &Marks) -> Result<(), String> {
        for (partition, unmarked) in self.unmarked.iter().enumerate() {
            for (identity, offset, session) in unmarked {
                let marked =
                    marks.has(*identity, partition, *offset) || self.gone.contains(identity);
                if *session == self.session && !marked {
                    return Err(format!(
                        "{identity:?} took effect at {partition}@{offset} and has no mark after an \
                         end in order"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether every effect of the session is durable.
    pub(super) fn is_durable(&self, marks: &Marks) -> bool {
        self.ended_in_order(marks).is_ok()
    }
}

/// Whether the group's position may go from where it is to `next`: forward, and over done records
/// alone.
pub(super) fn may_commit(
    cluster: &Cluster,
    partition: usize,
    next: i64,
    marks: &Marks,
    history: &History,
) -> Result<(), String> {
    let before = cluster.committed[partition].unwrap_or(0);
    if next < before {
        return Err(format!(
            "the group goes back on {partition}, from {before} to {next}"
        ));
    }
    let log = &cluster.logs[partition];
    let mut passed = log.records.range(before..next);
    let marked = |offset: i64, identity: Identity| {
        marks.has(identity, partition, offset) || history.gone.contains(&identity)
    };
    match passed.find(|(offset, record)| !marked(**offset, record.identity)) {
        None => Ok(()),
        Some((offset, record)) => Err(format!(
            "the group's position on {partition} goes to {next}, past {:?} at {offset}, which has \
             no mark",
            record.identity
        )),
    }
}
