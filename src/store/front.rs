//! Which units of a partition's front are to go.

use super::partitions::Partition;
use super::tail::{Tail, Total};
use super::{CommitUnit, Expired, Expiry, NextOffset, PartitionId, Place, Retained, StoreError};

/// Units of one step.
const UNITS_AT_ONCE: usize = 64;
/// Keys after which a step ends.
const KEYS_AT_ONCE: u64 = 20_000;

/// How old a unit is, as far as it says so itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aged {
    pub(super) tail: Option<Tail>,
    pub(super) max_timestamp_ms: i64,
}

impl Aged {
    /// The time from which it counts as old, where the partition's clock stands at `clock_ms`.
    pub(super) fn dated_ms(&self, clock_ms: i64) -> i64 {
        let max = self.max_timestamp_ms;
        match &self.tail {
            Some(tail) => tail.dated_ms(max, clock_ms),
            // Written before there was retention: without a time it is never old.
            None if max <= 0 => clock_ms,
            None => max.min(clock_ms),
        }
    }
}

impl Partition {
    /// What is held of it, where its oldest unit is as old as that. `None` before the first unit.
    pub(super) fn retained(&self, id: PartitionId, oldest: Aged) -> Option<Retained> {
        let tail = self.tail?;
        Some(Retained {
            id,
            partition: self.name.clone(),
            began: tail.began,
            from: self.front?,
            position: self.position(),
            open: self.open,
            clock_ms: tail.clock_ms,
            oldest_ms: oldest.dated_ms(tail.clock_ms),
            usage: self.usage(),
        })
    }
}

/// A unit that was read, with what it takes in the log.
pub(super) struct Fore {
    pub(super) place: Place,
    pub(super) aged: Aged,
    pub(super) bytes: u64,
    pub(super) unit: CommitUnit,
}

/// What goes in one step.
pub(super) struct Step {
    pub(super) fores: Vec<Fore>,
    /// Where the log begins behind it.
    pub(super) front: NextOffset,
    pub(super) total: Total,
}

impl Step {
    pub(super) fn expired(&self) -> Expired {
        Expired {
            keys: self.total.entries,
            units: self.fores.len() as u64,
            bytes: self.total.bytes,
        }
    }
}

fn clock_ms(partition: &Partition) -> i64 {
    partition.tail.map_or(i64::MIN, |tail| tail.clock_ms)
}

/// The time from which a unit counts as old, with what those behind it say.
///
/// One that claims to be from later than the clock stands is as old as its commit. Its own tail may
/// say too much: after a pause the clock moves only when three records agree, with the second unit
/// behind it.
fn dated_ms(
    fore: &Fore,
    clock_ms: i64,
    behind: &mut impl FnMut(Place) -> Result<Option<Fore>, StoreError>,
) -> Result<i64, StoreError> {
    let mut dated_ms = fore.aged.dated_ms(clock_ms);
    if fore.aged.max_timestamp_ms <= clock_ms {
        return Ok(dated_ms);
    }
    let (mut place, mut moved) = (fore.place, 0);
    for _ in 0..UNITS_AT_ONCE {
        let Some(next) = behind(place)? else {
            // The clock may still be on its way to it.
            return Ok(clock_ms);
        };
        place = next.place;
        dated_ms = dated_ms.max(next.aged.tail.map_or(dated_ms, |tail| tail.clock_ms));
        // What only fills gaps says nothing of the time.
        moved += u32::from(place.step == 0);
        if moved == 2 {
            break;
        }
    }
    Ok(dated_ms)
}

/// Whether a unit may go by its place: below what is not done, and never the last, which says
/// where the work stands.
fn may_go(expiry: &Expiry, partition: &Partition, place: Place) -> bool {
    place.next <= expiry.below.min(partition.position()) && place < partition.place
}

/// Chooses a step. `behind` reads the first unit behind a place.
pub(super) fn choose(
    expiry: &Expiry,
    partition: &Partition,
    mut behind: impl FnMut(Place) -> Result<Option<Fore>, StoreError>,
) -> Result<Option<Step>, StoreError> {
    let Some(front) = partition.front else {
        return Ok(None);
    };
    let clock_ms = clock_ms(partition);
    let (mut fores, mut sum) = (Vec::<Fore>::new(), Total::default());
    let mut place = Place::from(front);
    while let Some(fore) = behind(place)? {
        place = fore.place;
        let moves = place.step == 0;
        let full = fores.len() >= UNITS_AT_ONCE
            || sum.entries >= expiry.entries.min(KEYS_AT_ONCE)
            || sum.bytes >= expiry.bytes;
        let old = dated_ms(&fore, clock_ms, &mut behind)? < expiry.older_than_ms;
        if !(old && may_go(expiry, partition, place)) {
            // A front is an offset: all units that end there go together, or none.
            if !moves {
                fores.retain(|fore| fore.place.next < place.next);
            }
            break;
        }
        if moves && full {
            break;
        }
        sum = sum.and(total(&fore));
        fores.push(fore);
    }
    let Some(last) = fores.last() else {
        return Ok(None);
    };
    let sum = fores.iter().map(total).fold(Total::default(), Total::and);
    Ok(Some(Step {
        front: last.place.next,
        fores,
        total: sum,
    }))
}

fn total(fore: &Fore) -> Total {
    Total {
        entries: fore.unit.entries.len() as u64,
        bytes: fore.bytes,
    }
}

/// About how many keys would go in all: the end is looked for between front and head, since units
/// are in the order of their age but for a few.
pub(super) fn count(
    expiry: &Expiry,
    partition: &Partition,
    mut behind: impl FnMut(Place) -> Result<Option<Fore>, StoreError>,
) -> Result<u64, StoreError> {
    let Some(front) = partition.front else {
        return Ok(0);
    };
    let clock_ms = clock_ms(partition);
    let (mut old, mut young) = (front.get(), partition.place.next.get());
    let mut before = partition.expired.entries;
    while old < young {
        let middle = old + (young - old) / 2;
        let place = NextOffset::new(middle).map(Place::from).unwrap_or_default();
        let fore = behind(place)?;
        let dated_ms = match &fore {
            Some(fore) => dated_ms(fore, clock_ms, &mut behind)?,
            None => i64::MAX,
        };
        match fore.filter(|fore| may_go(expiry, partition, fore.place)) {
            Some(fore) if dated_ms < expiry.older_than_ms => {
                old = fore.place.next.get();
                let tail = fore.aged.tail.map(|tail| tail.before.entries);
                // Of one that does not say, as many as there may be.
                let base = tail.unwrap_or(partition.written.entries);
                before = base.saturating_add(fore.unit.entries.len() as u64);
            }
            _ => young = middle,
        }
    }
    Ok(before.saturating_sub(partition.expired.entries))
}
