//! The index of a store in a directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::manifest::{self, Covered, Manifest};
use super::run::Run;
use super::sealer::{self, Sealer};
use super::tiers::{Frozen, Tiers};
use crate::key::Fingerprint;
use crate::record::NextOffset;
use crate::store::directory::files;
use crate::store::{CommitUnit, Mark, PartitionId, StoreError};

/// With so many tables' keys in memory beside the one that is being sealed, commits wait.
const CROWDED: usize = 4;

/// What bounds memory and work.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "the unit comes last")]
pub(in crate::store) struct Bounds {
    /// So many keys are gathered in memory before they are sealed: 17 MB, and just so many that the
    /// tables do not grow once more.
    pub(in crate::store) active_keys: usize,
    /// Fewer are not sealed when the store is closed: they are read back in a tenth of a second.
    pub(in crate::store) closing_keys: usize,
    /// So many keys share a filter at most. Making one takes about 30 bytes for each of them.
    pub(in crate::store) shard_keys: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            active_keys: 400 << 10,
            closing_keys: 64 << 10,
            shard_keys: 128 << 10,
        }
    }
}

/// The known keys. Many threads look up, one commits, and one of its own seals and merges.
pub(in crate::store) struct Index {
    sealer: Arc<Sealer>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Index {
    /// Opens the index in a directory of its own, and says up to where it covers the log: nothing
    /// where there is none, or where it is damaged.
    ///
    /// # Errors
    /// Where what is damaged or left over cannot be removed.
    pub(in crate::store) fn open(
        directory: &Path,
        store_id: &str,
        bounds: Bounds,
    ) -> Result<(Self, Covered), StoreError> {
        let (manifest, runs) = match read(directory, store_id) {
            Ok(read) => read,
            Err(what) => {
                tracing::warn!(path = %directory.display(), what,
                    "the index is damaged: it is made anew from the log");
                (Manifest::default(), Vec::new())
            }
        };
        remove_others(directory, &manifest)?;
        let covered = manifest.covered.clone();
        let tiers = Tiers {
            runs,
            ..Tiers::default()
        };
        let sealer = Sealer::new(
            directory.to_owned(),
            store_id.to_owned(),
            bounds,
            manifest,
            tiers,
        );
        let index = Self {
            sealer: Arc::new(sealer),
            thread: Mutex::new(None),
        };
        Ok((index, covered))
    }

    /// One answer a key, in order.
    ///
    /// # Errors
    /// Where a run cannot be read, or is damaged: the index is made anew when the store is opened
    /// the next time.
    pub(in crate::store) fn lookup(
        &self,
        keys: &[Fingerprint],
        found: &mut Vec<Option<Mark>>,
    ) -> Result<(), StoreError> {
        let looked_up = self.sealer.current.get().lookup(keys, found);
        if let Err(error) = &looked_up {
            self.sealer.fail(error.to_string());
            if let StoreError::IndexDamaged { .. } = error {
                // It would be found again, and refused again, after every opening.
                self.invalidate()?;
            }
        }
        looked_up
    }

    /// Adds a unit's keys. The first mark of a key stands, unless a later one has a higher rank.
    pub(in crate::store) fn insert(&self, unit: &CommitUnit) {
        let tiers = self.sealer.current.get();
        let counts = |id, offset| tiers.counts_at(id, offset);
        tiers.active.insert(unit, counts);
    }

    /// Says where a partition's log begins. Before the first key of it is inserted or sealed: a
    /// mark that has expired would stand in the way of one that has not.
    pub(in crate::store) fn begin_at(&self, id: PartitionId, front: NextOffset) {
        self.sealer
            .current
            .change(|tiers| tiers.raise_floor(id, front));
    }

    /// Whether there are so many new keys that they are to be sealed, and nothing else is being.
    pub(in crate::store) fn is_full(&self) -> bool {
        let tiers = self.sealer.current.get();
        tiers.frozen.is_none() && tiers.active.len() >= self.sealer.bounds.active_keys
    }

    /// Has what was inserted sealed, up to the places that `covered` names. All of that is on the
    /// device already, and stays.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub(in crate::store) fn seal(&self, covered: Covered) -> Result<(), StoreError> {
        self.freeze(covered);
        self.start()?;
        self.sealer.wake();
        Ok(())
    }

    fn freeze(&self, covered: Covered) {
        self.sealer.current.change(|tiers| {
            if tiers.frozen.is_none() {
                let table = std::mem::take(&mut tiers.active);
                tiers.frozen = Some(Arc::new(Frozen { table, covered }));
            }
        });
    }

    /// Waits until there is room for more, where the one who inserts may wait: when a store is
    /// opened.
    pub(in crate::store) fn wait_for_room(&self) {
        self.sealer.wait_for_room();
    }

    /// Waits, where keys come so much faster than they are sealed that memory would not be bounded:
    /// a device that has become slow holds the commits up in the end. To be called without a lock
    /// on the store: who only asks for its heads need not wait with the commit.
    pub(in crate::store) fn wait_while_crowded(&self) {
        let tiers = self.sealer.current.get();
        let crowded = self.sealer.bounds.active_keys.saturating_mul(CROWDED);
        if tiers.frozen.is_some() && tiers.active.len() >= crowded {
            tracing::warn!(path = %self.sealer.directory.display(), keys = tiers.active.len(),
                "keys come faster than the index is written: a commit waits for it");
            self.sealer.wait_for_room();
        }
    }

    /// Refuses where a look-up or the sealing has failed: what is not sealed would be kept in memory
    /// without bound.
    ///
    /// # Errors
    /// [`StoreError::Poisoned`], with what failed first.
    pub(in crate::store) fn check(&self) -> Result<(), StoreError> {
        match self.sealer.failure() {
            Some(cause) => Err(StoreError::Poisoned {
                place: format!("the index at {}", self.sealer.directory.display()),
                cause,
            }),
            None => Ok(()),
        }
    }

    /// Units were dropped from a partition's front: marks of records below it do not count any more.
    ///
    /// A run says nothing of the unit that a key came from. So a key that was done late, in a gap,
    /// goes with the records beside its own, and not only when its unit does.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub(in crate::store) fn expire<'a>(
        &self,
        id: PartitionId,
        front: NextOffset,
        dropped: impl Iterator<Item = &'a CommitUnit>,
    ) -> Result<(), StoreError> {
        let tiers = self.sealer.current.change(|tiers| {
            tiers.raise_floor(id, front);
            tiers.clone()
        });
        for unit in dropped {
            tiers.active.remove(unit);
        }
        if !tiers.runs.is_empty() {
            self.start()?;
            self.sealer.wake();
        }
        Ok(())
    }

    /// Runs count no more: what they say of the log is not what it will say. The index is made anew
    /// when the store is opened the next time.
    ///
    /// # Errors
    /// Where the manifest cannot be removed.
    pub(in crate::store) fn invalidate(&self) -> Result<(), StoreError> {
        self.sealer.invalidate()
    }

    /// How many marks there are: how many keys, but for those that have a mark in several runs,
    /// since they were done again after they had been forgotten or given up, or read once more.
    pub(in crate::store) fn len(&self) -> u64 {
        self.sealer.current.get().len()
    }

    /// Whether enough is there that is not sealed, for the next opening to be worth the work.
    pub(in crate::store) fn is_worth_sealing(&self) -> bool {
        let tiers = self.sealer.current.get();
        let frozen = tiers.frozen.as_ref().map_or(0, |frozen| frozen.table.len());
        frozen + tiers.active.len() >= self.sealer.bounds.closing_keys
            && self.sealer.failure().is_none()
    }

    /// Ends the thread; a merge is broken off. What is not sealed yet is, where `covered` is given.
    pub(in crate::store) fn close(&self, covered: Option<Covered>) {
        self.sealer.stop();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // It has told of its own failure.
            let _ = thread.join();
        }
        let Some(covered) = covered else {
            return;
        };
        if let Err(error) = self.sealer.seal_rest(covered) {
            tracing::warn!(path = %self.sealer.directory.display(), %error,
                "not all keys were sealed: the next opening reads them from the log");
        }
    }

    /// How many keys wait for the next sealing.
    #[cfg(test)]
    pub(in crate::store) fn unsealed(&self) -> usize {
        self.sealer.current.get().active.len()
    }

    /// Whether nothing is left to be sealed or merged.
    #[cfg(test)]
    pub(in crate::store) fn is_settled(&self) -> bool {
        self.sealer.is_idle() && self.sealer.current.get().frozen.is_none()
    }

    fn start(&self) -> Result<(), StoreError> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let failed = files::failed(&self.sealer.directory, "starting a thread for the index");
            *thread = Some(sealer::start(Arc::clone(&self.sealer)).map_err(failed)?);
        }
        Ok(())
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        self.close(None);
    }
}

/// The manifest and the runs that it names.
fn read(directory: &Path, store_id: &str) -> Result<(Manifest, Vec<Run>), String> {
    let manifest = Manifest::read(directory, store_id)
        .map_err(|what| format!("its manifest: {what}"))?
        .unwrap_or_default();
    let mut runs = Vec::with_capacity(manifest.runs.len());
    for named in &manifest.runs {
        let run = Run::open(named.number, &path_of(directory, named.number));
        let run = run.map_err(|error| error.to_string())?;
        if run.keys != named.keys {
            return Err(format!(
                "{} holds {} keys, not {}",
                run.file.path.display(),
                run.keys,
                named.keys
            ));
        }
        runs.push(run);
    }
    Ok((manifest, runs))
}

pub(super) fn path_of(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:08}.run"))
}

/// Removes what a crash left behind, and all of it where no run counts.
fn remove_others(directory: &Path, manifest: &Manifest) -> Result<(), StoreError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(files::unusable(directory)(error)),
    };
    let named = manifest.runs.iter();
    let mut kept: Vec<_> = named.map(|run| path_of(directory, run.number)).collect();
    if manifest.covered.is_empty() {
        // For good, and first: one that came back would name what has gone, or what is not believed.
        manifest::remove(directory)?;
    } else {
        kept.push(directory.join(manifest::NAME));
    }
    for entry in entries {
        let path = entry.map_err(files::unusable(directory))?.path();
        if !kept.contains(&path) {
            fs::remove_file(&path).map_err(files::unusable(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
