//! What is written under one lock: the log, and what stands beside it.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use super::{Durability, Engine, HighWater, Paths, Stamp, files, format, high_water};
use crate::clock::Clock;
use crate::store::format::Logged;
use crate::store::front::Aged;
use crate::store::partitions::Partitions;
use crate::store::tail::Moment;
use crate::store::{CommitUnit, PartitionId, Place, StoreError};

pub(super) struct State<E> {
    pub(super) log: E,
    pub(super) stamp: Stamp,
    pub(super) high_water: HighWater,
    pub(super) marks: Vec<high_water::Mark>,
    pub(super) partitions: Partitions,
    /// The first failed write, after which nothing is written.
    pub(super) poison: Option<String>,
    pub(super) clock: Arc<dyn Clock>,
    /// How old the units at the fronts are, as far as it was asked for.
    pub(super) oldest: HashMap<PartitionId, Aged>,
}

impl<E: Engine> State<E> {
    /// Brings a partition's slot up to date, and to the device where a crash must not undo it.
    pub(super) fn write_mark(
        &mut self,
        paths: &Paths,
        id: PartitionId,
        sync: bool,
    ) -> Result<(), StoreError> {
        let failed = || files::failed::<io::Error>(&paths.high_water, "writing the high water");
        let Some(mark) = self.marks.get(id.0 as usize) else {
            return Err(StoreError::Misused(
                "a partition that this store never leased",
            ));
        };
        self.high_water.write(id, mark).map_err(failed())?;
        if sync {
            self.high_water.sync().map_err(failed())
        } else {
            Ok(())
        }
    }

    pub(super) fn mark_mut(
        &mut self,
        id: PartitionId,
    ) -> Result<&mut high_water::Mark, StoreError> {
        self.marks.get_mut(id.0 as usize).ok_or(StoreError::Misused(
            "a partition that this store never leased",
        ))
    }

    /// The log is durable up to the heads: says so outside of it.
    fn raise(&mut self, paths: &Paths, id: PartitionId, place: Place) -> Result<(), StoreError> {
        self.mark_mut(id)?.place = Some(place);
        self.write_mark(paths, id, false)
    }

    /// The first record of a partition behind a place, and its length.
    pub(super) fn behind(
        &self,
        paths: &Paths,
        id: PartitionId,
        place: Place,
    ) -> Result<Option<(Logged, u64)>, StoreError> {
        // What lies below the front may still be there: a crash, or another thread, is about to
        // take it out.
        let front = self.partitions.get(id).and_then(|one| one.front);
        let from = format::log_key_behind(id, front.map_or(place, |at| place.max(at.into())));
        let Some((key, value)) = self.log.first_from(from.as_ref())? else {
            return Ok(None);
        };
        let logged = format::decode(key.as_ref(), value.as_ref())
            .map_err(|what| files::damaged(&paths.log, what))?;
        let bytes = value.as_ref().len() as u64;
        Ok(Some((logged, bytes)).filter(|(logged, _)| logged.unit.id == id))
    }

    pub(super) fn append(
        &mut self,
        paths: &Paths,
        durability: Durability,
        units: &[CommitUnit],
    ) -> Result<(), StoreError> {
        let mut places = Vec::with_capacity(units.len());
        let now = Moment::Now(self.clock.now_ms());
        for unit in units {
            let tail = self.partitions.tail_of(unit, now);
            let place = self.partitions.place_of(unit)?;
            let last = self.partitions.get(unit.id).map(|last| last.place.step);
            let key = format::log_key(unit.id, place);
            let value = format::encode_unit(place, last.unwrap_or(0), unit, Some(tail));
            places.push((place, tail, value.len() as u64));
            self.log.insert(key.as_ref(), value)?;
        }
        self.log.harden()?;
        for (unit, (place, tail, bytes)) in units.iter().zip(places) {
            let mark = self.mark_mut(unit.id)?;
            mark.floor = mark.floor.or(Some(unit.previous));
            // Only what a crash cannot undo may be demanded at the next opening.
            if durability == Durability::Power {
                self.raise(paths, unit.id, place)?;
            }
            self.partitions.advance(unit, tail, bytes)?;
        }
        Ok(())
    }

    /// Reads every record that is not below its partition's front.
    pub(super) fn scan(
        &self,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.log.scan(|key, value| {
            let named = format::parse_log_key(key);
            let below = named.is_some_and(|(id, place)| {
                let front = self.partitions.get(id).and_then(|one| one.front);
                front.is_some_and(|front| place.next <= front)
            });
            if below { Ok(()) } else { each(key, value) }
        })
    }
}
