//! Reading the log when a store is opened: what is not sealed, and whether a stretch is missing.

use std::fmt::Display;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::{
    Covered, Index, Log, Partitions, Paths, StoreError, covered, files, format, high_water,
};
use crate::clock::{Clock as _, SystemClock};
use crate::record::NextOffset;
use crate::store::format::Logged;
use crate::store::partitions::NEVER_LEASED;
use crate::store::standing::Standing;
use crate::store::tail::Moment;
use crate::store::{PartitionId, Place};

/// How often a long opening says how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// What is read, and what it is checked against and brought into.
pub(super) struct Reading<'a, L> {
    log: &'a L,
    paths: &'a Paths,
    partitions: &'a mut Partitions,
    marks: &'a mut [high_water::Mark],
    index: &'a Index,
    /// Below their partition's floor: a crash came between the floor and their end.
    expired: Vec<Vec<u8>>,
    now: Moment,
    begun: Instant,
    said: Instant,
}

impl<'a, L: Log> Reading<'a, L> {
    pub(super) fn new(
        log: &'a L,
        paths: &'a Paths,
        partitions: &'a mut Partitions,
        marks: &'a mut [high_water::Mark],
        index: &'a Index,
    ) -> Self {
        let now = Instant::now();
        Self {
            log,
            paths,
            partitions,
            marks,
            index,
            expired: Vec::new(),
            now: Moment::Old(SystemClock::new().now_ms()),
            begun: now,
            said: now,
        }
    }

    /// Brings heads and index up to the log, and checks that no stretch of it is missing: records
    /// must meet, begin where the partition began or where the index covers it to, and reach at
    /// least as far as the high water says.
    pub(super) fn read(mut self, covered: &Covered) -> Result<(), StoreError> {
        for (id, standing) in covered {
            self.resume(*id, standing)?;
        }
        for (id, mark) in (0..).map(PartitionId).zip(&*self.marks) {
            if let Some(floor) = mark.floor {
                self.index.begin_at(id, floor);
            }
        }
        let mut from = Vec::new();
        while let Some(behind) = self.read_from(&from, covered)? {
            from = behind;
        }
        // Before anything is taken out: a floor that the log does not reach is damage.
        self.check_ends()?;
        self.finish_expiry()?;
        for (id, _) in self.partitions.iter() {
            let front = self.partitions.retained_from(id);
            if front > NextOffset::ZERO {
                self.index.expire(id, front, std::iter::empty())?;
            }
        }
        if self.begun.elapsed() >= PROGRESS_EVERY {
            let seconds = self.begun.elapsed().as_secs_f32();
            tracing::info!(path = %self.paths.directory.display(), keys = self.index.len(), seconds, "store read");
        }
        Ok(())
    }

    /// Goes on from where a partition's log had been followed to. Its record there must be the one
    /// that it was.
    fn resume(&mut self, id: PartitionId, standing: &Standing) -> Result<(), StoreError> {
        let (Some(partition), Some(mark)) =
            (self.partitions.get(id), self.marks.get_mut(id.0 as usize))
        else {
            return Err(StoreError::Misused(NEVER_LEASED));
        };
        let name = partition.name.clone();
        let front = mark.floor.max(Some(standing.front));
        mark.floor = front;
        if front >= Some(standing.place.next) {
            // All of it has expired since, the record that it ends at among it.
            return Ok(());
        }
        let key = format::log_key(id, standing.place);
        let Some((at, value)) = self.log.first_from(key.as_ref())? else {
            return Err(self.cut_short(&name, id, standing.place));
        };
        if at.as_ref() != key.as_ref() {
            return Err(self.cut_short(&name, id, standing.place));
        }
        format::decode(key.as_ref(), value.as_ref())
            .map_err(|what| files::damaged(&self.paths.log, what))?;
        let mut standing = standing.clone();
        if front > Some(standing.front) {
            self.move_front(id, &mut standing, front.unwrap_or_default())?;
        }
        self.partitions.resume(id, standing)
    }

    /// Units were dropped since: what is held begins at the first that is left.
    fn move_front(
        &self,
        id: PartitionId,
        standing: &mut Standing,
        front: NextOffset,
    ) -> Result<(), StoreError> {
        standing.front = front;
        let from = format::log_key_behind(id, Place::from(front));
        if let Some((key, value)) = self.log.first_from(from.as_ref())? {
            let first = format::decode(key.as_ref(), value.as_ref())
                .map_err(|what| files::damaged(&self.paths.log, what))?;
            // One that an older version wrote does not say what was before it: then what expired
            // since counts as held until the front is at one that does.
            if let Some(tail) = first.tail.filter(|_| first.unit.id == id) {
                standing.expired = tail.before;
            }
        }
        Ok(())
    }

    fn cut_short(&self, name: &impl Display, id: PartitionId, place: Place) -> StoreError {
        let what = format!(
            "the log of {name} (number {}) has no record up to offset {place}, but had been \
             acknowledged and sealed up to there",
            id.0,
        );
        files::damaged(&self.paths.log, what)
    }

    /// Reads records until one that is covered already; says what to go on from then.
    fn read_from(&mut self, from: &[u8], covered: &Covered) -> Result<Option<Vec<u8>>, StoreError> {
        let mut next = None;
        let log = self.log;
        log.scan_from(from, |key, value| {
            if is_expired(self.marks, key) {
                self.expired.push(key.to_vec());
                return Ok(ControlFlow::Continue(()));
            }
            if let Some(behind) = behind_covered(key, covered) {
                next = Some(behind);
                return Ok(ControlFlow::Break(()));
            }
            self.take(key, value)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(next)
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let damaged = |what: String| files::damaged(&self.paths.log, what);
        let logged = format::decode(key, value).map_err(|what| damaged(what.to_owned()))?;
        follow(self.partitions, self.marks, &logged).map_err(damaged)?;
        let tail = logged.tail;
        let tail = tail.unwrap_or_else(|| self.partitions.tail_of(&logged.unit, self.now));
        let bytes = value.len() as u64;
        self.partitions.advance(&logged.unit, tail, bytes)?;
        self.index.insert(&logged.unit);
        if self.index.is_full() {
            // What is read here may still be on its way to the device.
            self.log.sync()?;
            self.index.seal(covered(self.partitions))?;
            // Else a long log would be in memory before the first of it is sealed.
            self.index.wait_for_room();
            self.index.check()?;
        }
        if self.said.elapsed() >= PROGRESS_EVERY {
            self.said = Instant::now();
            tracing::info!(path = %self.paths.directory.display(), keys = self.index.len(), "reading the store");
        }
        Ok(())
    }

    /// Takes out what was about to be when the process died.
    fn finish_expiry(&self) -> Result<(), StoreError> {
        if self.expired.is_empty() {
            return Ok(());
        }
        let records = self.expired.len();
        tracing::info!(records, "expiry that was cut off is finished");
        for key in &self.expired {
            self.log.remove(key)?;
        }
        self.log.sync()
    }

    fn check_ends(&mut self) -> Result<(), StoreError> {
        for ((id, partition), mark) in self.partitions.iter().zip(&mut *self.marks) {
            let reached = partition.head.map(|_| partition.place);
            if reached < mark.place {
                let what = format!(
                    "the log of {} (number {}) ends at offset {}, but had been acknowledged up to {}",
                    partition.name,
                    id.0,
                    reached.unwrap_or_default(),
                    mark.place.unwrap_or_default(),
                );
                return Err(files::damaged(&self.paths.log, what));
            }
            let is_its = |key: &Vec<u8>| format::parse_log_key(key).is_some_and(|(of, _)| of == id);
            if reached.is_none() && self.expired.iter().any(is_its) {
                let what = format!(
                    "the log of {} (number {}) ends below offset {}, where it begins by now: its \
                     last record never expires",
                    partition.name,
                    id.0,
                    mark.floor.unwrap_or_default(),
                );
                return Err(files::damaged(&self.paths.log, what));
            }
            if reached.is_none() {
                // Written ahead of a first record that a power cut took back: it may begin elsewhere.
                mark.floor = None;
            }
        }
        Ok(())
    }
}

/// What an index says that is not of this log, in words. The log is sound for all that: what is
/// missing or damaged in it is found later.
pub(super) fn doubt(
    log: &impl Log,
    partitions: &Partitions,
    covered: &Covered,
) -> Result<Option<String>, StoreError> {
    for (id, standing) in covered {
        let Some(partition) = partitions.get(*id) else {
            let what = format!("it covers partition number {}, which has no name", id.0);
            return Ok(Some(what));
        };
        let key = format::log_key(*id, standing.place);
        let found = log.first_from(key.as_ref())?;
        let record = found.filter(|(at, _)| at.as_ref() == key.as_ref());
        let logged =
            record.and_then(|(key, value)| format::decode(key.as_ref(), value.as_ref()).ok());
        if logged.is_some_and(|logged| logged.unit.gaps != standing.gaps) {
            let name = &partition.name;
            let what = format!("it ends at another record of {name} than the log's");
            return Ok(Some(what));
        }
    }
    Ok(None)
}

/// Whether a record lies below its partition's floor.
fn is_expired(marks: &[high_water::Mark], key: &[u8]) -> bool {
    let below = format::parse_log_key(key).and_then(|(id, place)| {
        let floor = marks.get(id.0 as usize)?.floor?;
        Some(place.next <= floor)
    });
    below.unwrap_or(false)
}

/// Where to go on behind what is covered, for a record that is.
fn behind_covered(key: &[u8], covered: &Covered) -> Option<Vec<u8>> {
    let (id, place): (PartitionId, Place) = format::parse_log_key(key)?;
    let standing = covered.get(&id)?;
    let behind = format::log_key_behind(id, standing.place);
    (place <= standing.place).then(|| behind.as_ref().to_owned())
}

/// Whether a record continues its partition's chain.
fn follow(
    partitions: &Partitions,
    marks: &mut [high_water::Mark],
    logged: &Logged,
) -> Result<(), String> {
    let unit = &logged.unit;
    let (Some(partition), Some(mark)) =
        (partitions.get(unit.id), marks.get_mut(unit.id.0 as usize))
    else {
        return Err(format!(
            "a record of partition number {}, which has no name",
            unit.id.0
        ));
    };
    let last = partition.head.map(|_| partition.place);
    let expected = last.map(|last| last.next).or(mark.floor);
    if expected.is_some_and(|expected| expected != unit.previous) {
        return Err(format!(
            "the log of {} has a hole: the record up to offset {} begins at {} instead of {}",
            partition.name,
            unit.next,
            unit.previous,
            expected.map_or(0, NextOffset::get),
        ));
    }
    let step = match last {
        Some(last) => last.step,
        // What filled gaps before it has expired with what lay below. It begins nothing itself.
        None if logged.place.step == 0 => logged.previous_step,
        None => 0,
    };
    if logged.previous_step != step || last.is_none() && logged.place.step > 0 {
        return Err(format!(
            "the log of {} has a hole: the record up to offset {} follows step {} at {}, not {}",
            partition.name, logged.place, logged.previous_step, unit.previous, step,
        ));
    }
    mark.floor = mark.floor.or(Some(unit.previous));
    Ok(())
}
