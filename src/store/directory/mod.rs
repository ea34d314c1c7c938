//! A store in a directory: a commit log in some engine, and beside it what the engine is checked
//! against on opening.

pub(super) mod copy;
mod engine;
mod expire;
pub(super) mod files;
mod forget;
mod high_water;
mod inspect;
mod journal;
pub(super) mod open;
mod read;
mod stamp;
mod state;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use self::copy::Copied;
pub use self::engine::Engine;
pub(super) use self::engine::{Failure, Log, Record, guarded};
use self::high_water::HighWater;
pub use self::inspect::{Inspection, PartitionState};
use self::journal::Journal;
use self::stamp::Stamp;
use self::state::State;
use super::index::{Bounds, Covered, Index};
use super::partitions::Partitions;
use super::{
    Claims, CommitUnit, Durability, Gaps, Head, Lease, Mark, Owner, PartitionId, Place, Retaining,
    Store, StoreError, Summary, format,
};
use crate::clock::Clock;
use crate::key::{Fingerprint, HashKey};
use crate::record::{NextOffset, TopicPartition};

/// The longest record, encoded. The pipeline commits a unit that has grown to 48 KiB, and the
/// largest result is 64 KiB. It is sled's bound (see its log), and the same for every engine, so
/// that what one holds can be copied to another.
pub(super) const UNIT_BYTES_MAX: usize = 116 << 10;

/// A store in a directory of its own, for one process at a time: `SledStore` or `RedbStore`.
///
/// An engine may panic on a damaged file; that is caught and answered as an error. In a program
/// built with `panic = "abort"` nothing can be caught: there it ends the process.
pub struct DirectoryStore<E: Engine> {
    // Fields are dropped in this order: the log must be closed before the lock is let go.
    state: Mutex<State<E>>,
    /// Never taken before `state`, so that nobody who writes it waits for a sync.
    journal: Mutex<Journal>,
    index: Index,
    claims: Claims,
    paths: Paths,
    durability: Durability,
    _lock: files::Lock,
}

struct Paths {
    directory: PathBuf,
    stamp: PathBuf,
    high_water: PathBuf,
    /// What can be made anew from the log.
    index: PathBuf,
    journal: PathBuf,
    lock: PathBuf,
    log: PathBuf,
    /// The log's own file, or the log itself.
    data: PathBuf,
}

impl Paths {
    fn new<E: Log>(directory: &Path) -> Self {
        let log = directory.join(E::PLACE);
        Self {
            directory: directory.to_owned(),
            stamp: directory.join("stamp"),
            high_water: directory.join("high-water"),
            index: directory.join("index"),
            journal: directory.join("journal"),
            lock: directory.join("lock"),
            data: match E::DATA {
                "" => log.clone(),
                data => log.join(data),
            },
            log,
        }
    }
}

impl<E: Engine> DirectoryStore<E> {
    #[cfg(test)]
    fn paths(directory: &Path) -> Paths {
        Paths::new::<E>(directory)
    }

    fn state(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes by another clock than the system's.
    pub(super) fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        self.state().clock = clock;
        self
    }

    fn journal_lock(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self) -> String {
        format!("the store at {}", self.paths.directory.display())
    }

    /// Runs a write. The flag is looked at under the lock that the write holds, else a failure
    /// could slip in between; and a failure poisons before the lock is let go.
    fn write<T>(
        &self,
        state: &mut State<E>,
        write: impl FnOnce(&mut State<E>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(cause) = &state.poison {
            return Err(StoreError::Poisoned {
                place: self.place(),
                cause: cause.clone(),
            });
        }
        write(state).inspect_err(|error| state.poison = Some(error.to_string()))
    }

    /// Has the new keys sealed. Under the lock: the heads are those of the last unit inserted.
    fn seal(&self, state: &mut State<E>) -> Result<(), StoreError> {
        // A run must not outlive the records that it was made from.
        if self.durability != Durability::Power {
            state.log.sync()?;
        }
        self.index.seal(covered(&state.partitions))
    }

    fn write_stamp(&self, state: &mut State<E>, stamp: Stamp) -> Result<(), StoreError> {
        self.write(state, |state| {
            stamp.write(&self.paths.stamp)?;
            state.stamp = stamp;
            Ok(())
        })
    }
}

impl<E: Engine> Store for DirectoryStore<E> {
    fn bind(&self, owner: &Owner) -> Result<HashKey, StoreError> {
        let mut state = self.state();
        if let Some(theirs) = state.stamp.owner() {
            super::owner_matches(&self.place(), &theirs, owner)?;
        } else {
            let mut stamp = state.stamp.clone();
            stamp.group = Some(owner.group.clone());
            stamp.recipe = Some(owner.recipe.clone());
            stamp.scope = Some(owner.scope.clone());
            self.write_stamp(&mut state, stamp)?;
        }
        state.stamp.hash_key(&self.paths.stamp).map(HashKey)
    }

    fn bind_cluster(&self, cluster_id: &str) -> Result<(), StoreError> {
        let mut state = self.state();
        if let Some(theirs) = &state.stamp.cluster_id {
            return super::same(&self.place(), "cluster", theirs, cluster_id);
        }
        let mut stamp = state.stamp.clone();
        stamp.cluster_id = Some(cluster_id.to_owned());
        self.write_stamp(&mut state, stamp)
    }

    fn lease(&self, partition: &TopicPartition) -> Result<Lease, StoreError> {
        let mut state = self.state();
        self.write(&mut state, |state| {
            let (id, new) = state.partitions.register(partition)?;
            let lease = state.partitions.lease(id)?;
            if new {
                state.marks.push(high_water::Mark {
                    floor: None,
                    place: None,
                    epoch: 0,
                    open: false,
                    lacks: false,
                });
            }
            let mark = state.mark_mut(id)?;
            mark.epoch = lease.epoch;
            // What a lease of this process kept that never ended is of its epoch: nobody takes it over.
            mark.lacks |= self.journal_lock().begin(id) && mark.open;
            mark.open = true;
            // The slot before the name: a named partition without a slot would be damage. And on
            // the device before the first effect, or a power cut would leave no doubt behind.
            state.write_mark(&self.paths, id, true)?;
            if new {
                let mut stamp = state.stamp.clone();
                stamp.partitions.push(stamp::PartitionName {
                    topic: partition.topic().to_owned(),
                    partition: partition.partition(),
                });
                stamp.write(&self.paths.stamp)?;
                state.stamp = stamp;
            }
            Ok(lease)
        })
    }

    fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        let mut state = self.state();
        let partition = state.partitions.get(lease.id);
        let reached = partition.and_then(|one| one.head.map(|_| one.place));
        state.partitions.release(lease)?;
        self.write(&mut state, |state| {
            // Whatever the durability: a clean mark must not outlive the commits before it.
            state.log.sync()?;
            let mark = state.mark_mut(lease.id)?;
            mark.place = reached;
            mark.open = false;
            mark.lacks = false;
            state.write_mark(&self.paths, lease.id, true)
        })
    }

    fn lookup(
        &self,
        keys: &[Fingerprint],
        found: &mut Vec<Option<Mark>>,
    ) -> Result<(), StoreError> {
        self.index.lookup(keys, found)
    }

    fn unit_behind(
        &self,
        id: PartitionId,
        place: Place,
    ) -> Result<Option<(Place, CommitUnit)>, StoreError> {
        let mut state = self.state();
        // A log that cannot be read any more is not to be written any more either.
        state
            .behind(&self.paths, id, place)
            .map(|found| found.map(|(logged, _)| (logged.place, logged.unit)))
            .inspect_err(|error| {
                state.poison.get_or_insert_with(|| error.to_string());
            })
    }

    fn gaps(&self, id: PartitionId) -> Gaps {
        self.state().partitions.gaps(id)
    }

    fn retained_from(&self, id: PartitionId) -> NextOffset {
        self.state().partitions.retained_from(id)
    }

    fn retaining(&self) -> Option<&dyn Retaining> {
        Some(self)
    }

    fn journal(&self, unit: &CommitUnit) -> bool {
        // Without a durability a dead process may lose more anyway.
        self.durability != Durability::None && self.journal_lock().write(unit)
    }

    fn may_lack_kept(&self, id: PartitionId) -> bool {
        let state = self.state();
        let mark = state.marks.get(id.0 as usize);
        mark.is_some_and(|mark| mark.lacks)
    }

    fn commit(&self, units: &[CommitUnit]) -> Result<(), StoreError> {
        self.index.wait_while_crowded();
        let mut state = self.state();
        if state.poison.is_none() {
            state.partitions.check_all(units)?;
            if units
                .iter()
                .any(|unit| format::encoded_bytes(unit) > UNIT_BYTES_MAX)
            {
                return Err(StoreError::Misused(
                    "a unit is longer than 116 KiB: results are at most 64 KiB each, and a \
                     commit is due before they add up to more",
                ));
            }
        }
        self.index.check()?;
        self.write(&mut state, |state| {
            state.append(&self.paths, self.durability, units)
        })?;
        // Only now: a mark that a crash could still undo suppresses nothing.
        for unit in units {
            self.index.insert(unit);
        }
        let mut journal = self.journal_lock();
        for unit in units {
            journal.logged(unit.id, unit.next);
        }
        drop(journal);
        if self.index.is_full() {
            // What is committed stays, whatever becomes of this.
            self.write(&mut state, |state| self.seal(state))?;
        }
        Ok(())
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn heads(&self) -> Vec<(TopicPartition, Option<Head>)> {
        self.state()
            .partitions
            .iter()
            .map(|(_, p)| (p.name.clone(), p.head))
            .collect()
    }

    fn summary(&self) -> Summary {
        Summary {
            place: format!("{} store at {}", E::NAME, self.paths.directory.display()),
            keys: self.index.len(),
            partitions: self.state().partitions.len() as u64,
            durability: self.durability,
        }
    }

    fn id(&self) -> Option<String> {
        Some(self.state().stamp.store_id.clone())
    }
}

impl<E: Engine> Drop for DirectoryStore<E> {
    fn drop(&mut self) {
        let state = self.state();
        let sound = state.poison.is_none() && self.index.is_worth_sealing();
        let covered = (sound && state.log.sync().is_ok()).then(|| covered(&state.partitions));
        self.index.close(covered);
    }
}

/// Up to where the log has been followed, or written.
fn covered(partitions: &Partitions) -> Covered {
    let standings = partitions.iter();
    standings
        .filter_map(|(id, one)| Some((id, one.standing()?)))
        .collect()
}

#[cfg(test)]
mod tests;
