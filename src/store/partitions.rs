//! The partitions of a store: their numbers, heads and leases. Shared by the local stores.

use std::collections::{HashMap, HashSet};

use super::{CommitUnit, Gaps, Head, Lease, PartitionId, Place, StoreError};
use crate::record::TopicPartition;

/// One partition's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Partition {
    pub(super) name: TopicPartition,
    pub(super) epoch: u32,
    pub(super) head: Option<Head>,
    /// Of the last unit.
    pub(super) place: Place,
    pub(super) gaps: Gaps,
    /// Leased and not released: a crash now leaves effects without marks.
    pub(super) open: bool,
}

/// What a number is answered with that no partition has.
pub(super) const NEVER_LEASED: &str = "a partition that this store never leased";

impl Partition {
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
        self.list.push(Partition {
            name: name.clone(),
            epoch: 0,
            head: None,
            place: Place::default(),
            gaps: Gaps::default(),
            open: false,
        });
        self.by_name.insert(name.clone(), id);
        Ok((id, true))
    }

    pub(super) fn get(&self, id: PartitionId) -> Option<&Partition> {
        self.list.get(id.0 as usize)
    }

    fn get_mut(&mut self, id: PartitionId) -> Result<&mut Partition, StoreError> {
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

    /// Moves the head behind a unit that has been written, or read back.
    pub(super) fn advance(&mut self, unit: &CommitUnit) -> Result<(), StoreError> {
        let place = self.place_of(unit)?;
        let partition = self.get_mut(unit.id)?;
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
