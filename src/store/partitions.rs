//! The partitions of a store: their numbers, heads and leases. Shared by the local stores.

use std::collections::{HashMap, HashSet};

use super::tail::{Moment, Tail, Total};
use super::{CommitUnit, Gaps, Head, Lease, PartitionId, Place, StoreError, Usage};
use crate::record::{NextOffset, TopicPartition};

/// One partition's state.
#[derive(Clone, Debug)]
pub(super) struct Partition {
    pub(super) name: TopicPartition,
    pub(super) epoch: u32,
    pub(super) head: Option<Head>,
    /// Of the last unit.
    pub(super) place: Place,
    pub(super) gaps: Gaps,
    /// Leased and not released: a crash now leaves effects without marks.
    pub(super) open: bool,
    /// Of the last unit.
    pub(super) tail: Option<Tail>,
    /// How much was written, up to the last unit and with it.
    pub(super) written: Total,
    /// How much of that has expired.
    pub(super) expired: Total,
    /// Where the log begins, `None` before the first unit.
    pub(super) front: Option<NextOffset>,
}

/// What a number is answered with that no partition has.
pub(super) const NEVER_LEASED: &str = "a partition that this store never leased";

impl Partition {
    /// One that nobody has worked on.
    pub(super) fn new(name: TopicPartition) -> Self {
        Self {
            name,
            epoch: 0,
            head: None,
            place: Place::default(),
            gaps: Gaps::default(),
            open: false,
            tail: None,
            written: Total::default(),
            expired: Total::default(),
            front: None,
        }
    }

    /// How much is held of it.
    pub(super) fn usage(&self) -> Usage {
        let Total { entries, bytes } = self.written.less(self.expired);
        Usage { entries, bytes }
    }

    /// Whether both say the same of a partition. Not of its time, where that was worked out when
    /// each was opened.
    #[cfg(any(feature = "sled", feature = "redb"))]
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let tail = self.tail.map(|tail| tail.began) == other.tail.map(|tail| tail.began);
        let place = (self.head, self.place, &self.gaps) == (other.head, other.place, &other.gaps);
        let front = self.head.and(self.front) == other.head.and(other.front);
        let lease = (&self.name, self.epoch, self.open) == (&other.name, other.epoch, other.open);
        tail && place && front && lease && self.usage() == other.usage()
    }

    /// Everything below is done.
    pub(super) fn position(&self) -> NextOffset {
        let next = self.head.map_or(NextOffset::ZERO, |head| head.next);
        self.gaps.first().unwrap_or(next)
    }

    /// Whether the unit may be written: under the newest lease and where the head stands.
    pub(super) fn check(&self, unit: &CommitUnit) -> Result<(), StoreError> {
        fence(self, unit.epoch)?;
        let head = self.head.map_or(unit.previous, |head| head.next);
        let fills = self.head.is_some() && unit.gaps != self.gaps;
        let moves = unit.next > unit.previous || (unit.next == unit.previous && fills);
        if unit.previous != head || !moves {
            return Err(StoreError::NotContiguous {
                partition: self.name.clone(),
                previous: unit.previous,
                next: unit.next,
                head,
            });
        }
        if !unit.gaps.fit_below(unit.next) {
            return Err(StoreError::Misused("gaps that do not lie below their head"));
        }
        Ok(())
    }
}

/// All partitions, by their dense number.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    list: Vec<Partition>,
    by_name: HashMap<TopicPartition, PartitionId>,
}

impl Partitions {
    /// The partition's number; a new one where it has none yet (the flag says so).
    pub(super) fn register(
        &mut self,
        name: &TopicPartition,
    ) -> Result<(PartitionId, bool), StoreError> {
        if let Some(id) = self.by_name.get(name) {
            return Ok((*id, false));
        }
        // The index keeps flags in the top bits of a number.
        let id = u32::try_from(self.list.len())
            .ok()
            .filter(|id| id >> 28 == 0);
        let id =
            PartitionId(id.ok_or(StoreError::Misused("a store holds at most 2^28 partitions"))?);
        self.list.push(Partition::new(name.clone()));
        self.by_name.insert(name.clone(), id);
        Ok((id, true))
    }

    pub(super) fn get(&self, id: PartitionId) -> Option<&Partition> {
        self.list.get(id.0 as usize)
    }

    pub(super) fn get_mut(&mut self, id: PartitionId) -> Result<&mut Partition, StoreError> {
        let partition = self.list.get_mut(id.0 as usize);
        partition.ok_or(StoreError::Misused(NEVER_LEASED))
    }

    pub(super) fn gaps(&self, id: PartitionId) -> Gaps {
        self.get(id)
            .map_or_else(Gaps::default, |one| one.gaps.clone())
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (PartitionId, &Partition)> {
        (0..).map(PartitionId).zip(&self.list)
    }

    /// Starts a lease. The caller makes it durable before it hands the lease out.
    pub(super) fn lease(&mut self, id: PartitionId) -> Result<Lease, StoreError> {
        let partition = self.get_mut(id)?;
        let in_doubt = partition.open;
        partition.open = true;
        partition.epoch += 1;
        Ok(Lease {
            id,
            epoch: partition.epoch,
            head: partition.head,
            in_doubt,
        })
    }

    /// Ends a lease in order.
    pub(super) fn release(&mut self, lease: &Lease) -> Result<(), StoreError> {
        let partition = self.get_mut(lease.id)?;
        fence(partition, lease.epoch)?;
        partition.open = false;
        Ok(())
    }

    /// Whether the units may be written together.
    pub(super) fn check_all(&self, units: &[CommitUnit]) -> Result<(), StoreError> {
        // Each is compared with the head before all of them: a second one would overlap.
        let mut seen = HashSet::with_capacity(units.len());
        for unit in units {
            if !seen.insert(unit.id) {
                return Err(StoreError::Misused(
                    "two units of one partition in one commit",
                ));
            }
            self.check(unit)?;
        }
        Ok(())
    }

    /// Whether the unit may be written.
    fn check(&self, unit: &CommitUnit) -> Result<(), StoreError> {
        let partition = self.get(unit.id).ok_or(StoreError::Misused(NEVER_LEASED))?;
        partition.check(unit)
    }

    /// Where a checked unit will lie.
    pub(super) fn place_of(&self, unit: &CommitUnit) -> Result<Place, StoreError> {
        let last = self.get(unit.id).map(|partition| partition.place);
        let step = match last {
            Some(last) if unit.next == unit.previous => last.step.checked_add(1),
            _ => Some(0),
        };
        let step = step.filter(|step| *step < u32::MAX);
        let next = unit.next;
        let full = StoreError::Misused("2^32 units have filled gaps below one head");
        step.map(|step| Place { next, step }).ok_or(full)
    }

    /// The tail that a checked unit will have.
    pub(super) fn tail_of(&self, unit: &CommitUnit, moment: Moment) -> Tail {
        let partition = self.get(unit.id);
        match partition.and_then(|partition| Some((partition.tail?, partition.written))) {
            Some((tail, written)) => {
                let last = written.less(tail.before);
                tail.next(unit, last, moment)
            }
            None => Tail::first(unit, moment),
        }
    }

    /// Moves the head behind a unit that has been written, or read back.
    pub(super) fn advance(
        &mut self,
        unit: &CommitUnit,
        tail: Tail,
        bytes: u64,
    ) -> Result<(), StoreError> {
        let place = self.place_of(unit)?;
        let partition = self.get_mut(unit.id)?;
        if partition.head.is_none() {
            partition.expired = tail.before;
        }
        partition.front.get_or_insert(unit.previous);
        let entries = unit.entries.len() as u64;
        partition.written = tail.before.and(Total { entries, bytes });
        partition.tail = Some(tail);
        let before = partition.head.map_or(-1, |head| head.max_timestamp_ms);
        let anchor = partition.head.and_then(|head| head.anchor);
        partition.place = place;
        partition.gaps = unit.gaps.clone();
        partition.head = Some(Head {
            next: unit.next,
            // What only fills gaps leaves the last record what it was.
            anchor: if place.step > 0 { anchor } else { unit.anchor },
            max_timestamp_ms: before.max(unit.max_timestamp_ms),
        });
        partition.epoch = partition.epoch.max(unit.epoch);
        Ok(())
    }

    /// The log begins further up from now on, and so much less is held.
    pub(super) fn expire(
        &mut self,
        id: PartitionId,
        front: NextOffset,
        expired: Total,
    ) -> Result<(), StoreError> {
        let partition = self.get_mut(id)?;
        partition.front = Some(front);
        partition.expired = partition.expired.and(expired);
        Ok(())
    }

    /// How much is held in all.
    pub(super) fn usage(&self) -> Usage {
        let all = self.list.iter().map(Partition::usage);
        all.fold(Usage::default(), |sum, one| Usage {
            entries: sum.entries + one.entries,
            bytes: sum.bytes + one.bytes,
        })
    }

    /// Below, keys have been dropped: the front where it has moved.
    pub(super) fn retained_from(&self, id: PartitionId) -> NextOffset {
        let partition = self.get(id);
        let moved = partition.and_then(|one| Some((one.front?, one.tail?.began)));
        let moved = moved.filter(|(front, began)| front > began);
        moved.map_or(NextOffset::ZERO, |(front, _)| front)
    }

    /// Puts back what a file says of a partition.
    #[cfg(any(feature = "sled", feature = "redb"))]
    pub(super) fn restore(
        &mut self,
        id: PartitionId,
        epoch: u32,
        open: bool,
    ) -> Result<(), StoreError> {
        let partition = self.get_mut(id)?;
        partition.epoch = partition.epoch.max(epoch);
        partition.open = open;
        Ok(())
    }
}

pub(super) fn fence(partition: &Partition, epoch: u32) -> Result<(), StoreError> {
    if partition.epoch == epoch {
        return Ok(());
    }
    Err(StoreError::Fenced {
        partition: partition.name.clone(),
        ours: epoch,
        newest: partition.epoch,
    })
}
