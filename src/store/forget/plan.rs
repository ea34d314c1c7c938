//! What forgetting changes: found by reading the log, before anything is written.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use super::{Forget, Forgotten, Reopened};
use crate::key::{Fingerprint, HashKey};
use crate::record::{NextOffset, TopicPartition};
use crate::store::partitions::{Partition, Partitions};
use crate::store::{CommitUnit, Entry, Gap, Gaps, Owner, PartitionId, StoreError};

/// The most ranges that forgetting keys may leave below one head. They are in every unit from then
/// on until they are handled, and a unit is bounded: the engine leaves room for two thousand.
const GAPS_MAX: usize = 1_000;

/// How an entry is recognised that is to be forgotten.
#[derive(Clone)]
enum Wanted {
    /// The key's fingerprints: one, or one for each partition that keys hold for.
    Keys(Rc<[Fingerprint]>),
    Offsets(Range<i64>),
}

impl Wanted {
    fn is(&self, entry: &Entry) -> bool {
        match self {
            Self::Keys(keys) => keys.contains(&entry.fingerprint),
            Self::Offsets(offsets) => offsets.contains(&entry.offset),
        }
    }
}

/// One partition that the wish names.
struct Part {
    name: TopicPartition,
    epoch: u32,
    next: NextOffset,
    before: Gaps,
    /// The gaps before, and what is forgotten.
    after: Gaps,
    reopened: Gaps,
    wanted: Wanted,
    keys: u64,
}

impl Part {
    fn reopen(&mut self, from: i64, to: i64) {
        let forgotten = true;
        let gap = Gap {
            from,
            to,
            forgotten,
        };
        self.reopened.open(gap);
        self.after.open(gap);
    }
}

/// What is to be changed.
pub(in crate::store) struct Plan {
    place: String,
    what: String,
    parts: BTreeMap<PartitionId, Part>,
}

impl Plan {
    /// A plan that has [seen](Plan::see) nothing yet. `floor` says where a partition's log begins.
    pub(in crate::store) fn new(
        place: String,
        forget: &Forget,
        owner: Option<(Owner, HashKey)>,
        partitions: &Partitions,
        floor: impl Fn(PartitionId) -> Option<NextOffset>,
    ) -> Result<Self, StoreError> {
        let mut plan = Self {
            place,
            what: forget.to_string(),
            parts: BTreeMap::new(),
        };
        let Some((owner, hash_key)) = owner else {
            return Err(plan.refused("no consumer has used the store yet"));
        };
        if let Err(reason) = forget.check(&owner) {
            return Err(plan.refused(&reason));
        }
        let known: Vec<_> = partitions
            .iter()
            .filter_map(|(id, one)| Some((id, one, floor(id)?.get()..one.head?.next.get())))
            .collect();
        let named = known.iter().filter(|(_, one, _)| forget.names(&one.name));
        let wanted = named.clone().map(|(_, one, _)| &one.name);
        match forget.fingerprints(&owner, &hash_key, wanted) {
            Some(keys) if keys.is_empty() => {}
            // In whatever partition: one that is read from a dead letter keeps its key.
            Some(keys) => {
                for (id, one, all) in &known {
                    plan.add(*id, one, all.end, Wanted::Keys(Rc::clone(&keys)));
                }
            }
            None => {
                for (id, one, all) in named {
                    let offsets = forget.offsets_of(all.clone());
                    if !offsets.is_empty() {
                        plan.add(*id, one, all.end, Wanted::Offsets(offsets));
                    }
                }
            }
        }
        if plan.parts.is_empty() {
            let known = known
                .iter()
                .map(|(_, one, all)| format!("{} from {} up to {}", one.name, all.start, all.end));
            let known = match known.collect::<Vec<_>>().join(", ") {
                none if none.is_empty() => "nothing".to_owned(),
                known => known,
            };
            return Err(plan.refused(&format!("what the store knows is {known}")));
        }
        Ok(plan)
    }

    fn add(&mut self, id: PartitionId, partition: &Partition, next: i64, wanted: Wanted) {
        let mut part = Part {
            name: partition.name.clone(),
            epoch: partition.epoch,
            next: NextOffset::after(next.saturating_sub(1)),
            before: partition.gaps.clone(),
            after: partition.gaps.clone(),
            reopened: Gaps::default(),
            wanted: wanted.clone(),
            keys: 0,
        };
        // Not its keys' offsets alone: records without a key took effect there too.
        if let Wanted::Offsets(offsets) = wanted {
            part.reopen(offsets.start, offsets.end);
        }
        self.parts.insert(id, part);
    }

    fn refused(&self, reason: &str) -> StoreError {
        StoreError::NotForgotten {
            place: self.place.clone(),
            reason: format!("{}: {reason}", self.what),
        }
    }

    /// Takes in one unit of the log. Work out of order leaves marks of an offset in any of them.
    pub(in crate::store) fn see(&mut self, unit: &CommitUnit) -> Result<(), StoreError> {
        let Some(part) = self.parts.get_mut(&unit.id) else {
            return Ok(());
        };
        for entry in &unit.entries {
            if !part.wanted.is(entry) {
                continue;
            }
            part.keys += u64::from(!entry.forgotten);
            if matches!(part.wanted, Wanted::Keys(_)) {
                part.reopen(entry.offset, entry.offset.saturating_add(1));
            }
        }
        let ranges = part.after.iter().len();
        if ranges > GAPS_MAX.max(part.before.iter().len()) {
            let name = part.name.clone();
            return Err(self.refused(&format!(
                "{name} would have more than {GAPS_MAX} ranges of offsets to be handled once more: \
                 forget one range of offsets instead, or let the consumer handle those that wait"
            )));
        }
        Ok(())
    }

    /// Closes the plan once all has been seen.
    pub(in crate::store) fn checked(self) -> Result<Self, StoreError> {
        let mut parts = self.parts.values();
        if parts.any(|part| part.keys > 0 || part.after != part.before) {
            return Ok(self);
        }
        let waits = self.parts.values().any(|part| !part.reopened.is_empty());
        Err(self.refused(if waits {
            "it is forgotten already, and will be handled at the next start"
        } else {
            "no such key was done. Keys are compared as bytes, just as the recipe finds them in a \
             record"
        }))
    }

    /// The units that open the gaps.
    pub(in crate::store) fn units(&self) -> Vec<CommitUnit> {
        let changed = self.parts.iter();
        let changed = changed.filter(|(_, part)| part.after != part.before);
        changed
            .map(|(id, part)| CommitUnit {
                id: *id,
                epoch: part.epoch,
                previous: part.next,
                next: part.next,
                max_timestamp_ms: -1,
                anchor: None,
                entries: Vec::new(),
                gaps: part.after.clone(),
                outbox: Vec::new(),
            })
            .collect()
    }

    /// Marks a unit's entries that are to be forgotten; says whether there are any.
    pub(in crate::store) fn mark(&self, unit: &mut CommitUnit) -> bool {
        let Some(part) = self.parts.get(&unit.id) else {
            return false;
        };
        let mut any = false;
        for entry in &mut unit.entries {
            if part.wanted.is(entry) && !entry.forgotten {
                entry.forgotten = true;
                // What a corrected handler records comes in its place.
                entry.result = None;
                any = true;
            }
        }
        any
    }

    /// What it comes to.
    pub(in crate::store) fn forgotten(&self) -> Forgotten {
        let parts = self.parts.values();
        let parts = parts.filter(|part| part.keys > 0 || part.after != part.before);
        Forgotten {
            partitions: parts
                .map(|part| Reopened {
                    partition: part.name.clone(),
                    keys: part.keys,
                    offsets: part.reopened.clone(),
                    position: part.after.first().unwrap_or(part.next),
                })
                .collect(),
        }
    }
}
