//! What is written under one lock: the log, and what stands beside it.

use std::io;

use super::{Durability, HighWater, Log, Paths, Stamp, files, format, high_water};
use crate::record::NextOffset;
use crate::store::partitions::Partitions;
use crate::store::{CommitUnit, PartitionId, StoreError};

pub(super) struct State {
    pub(super) log: Log,
    pub(super) stamp: Stamp,
    pub(super) high_water: HighWater,
    pub(super) marks: Vec<high_water::Mark>,
    pub(super) partitions: Partitions,
    /// The first failed write, after which nothing is written.
    pub(super) poison: Option<String>,
}

impl State {
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
    pub(super) fn raise(&mut self, paths: &Paths, unit: &CommitUnit) -> Result<(), StoreError> {
        self.mark_mut(unit.id)?.next = Some(unit.next);
        self.write_mark(paths, unit.id, false)
    }

    pub(super) fn unit_behind(
        &self,
        paths: &Paths,
        id: PartitionId,
        position: NextOffset,
    ) -> Result<Option<CommitUnit>, StoreError> {
        let from = format::log_key(id, NextOffset::after(position.get()));
        let Some((key, value)) = self.log.first_from(from)? else {
            return Ok(None);
        };
        let unit = format::decode(&key, &value).map_err(|what| files::damaged(&paths.log, what))?;
        Ok(Some(unit).filter(|unit| unit.id == id))
    }

    pub(super) fn append(
        &mut self,
        paths: &Paths,
        durability: Durability,
        units: &[CommitUnit],
    ) -> Result<(), StoreError> {
        for unit in units {
            self.log
                .insert(&format::log_key(unit.id, unit.next), format::encode(unit))?;
        }
        self.log.harden()?;
        for unit in units {
            let mark = self.mark_mut(unit.id)?;
            mark.floor = mark.floor.or(Some(unit.previous));
            // Only what a crash cannot undo may be demanded at the next opening.
            if durability == Durability::Power {
                self.raise(paths, unit)?;
            }
            self.partitions.advance(unit)?;
        }
        Ok(())
    }
}
