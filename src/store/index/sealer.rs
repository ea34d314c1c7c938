//! What happens beside the commits: full tables become runs, runs are merged, and what has expired
//! is dropped.
//!
//! Each step ends with a new manifest. Before it, what the step wrote is not named and does not
//! count; behind it, what the step replaced is not. So a crash leaves one or the other.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::manifest::{self, Covered, Manifest, Named};
use super::merge;
use super::run::Run;
use super::table::Table;
use super::tiered::{Bounds, path_of};
use super::tiers::{Current, Tiers};
use super::writer::{self, Writer, Written};
use crate::store::StoreError;
use crate::store::directory::files;

/// The state of an index, and the steps that its thread takes.
pub(super) struct Sealer {
    pub(super) directory: PathBuf,
    store_id: String,
    pub(super) bounds: Bounds,
    pub(super) current: Current,
    /// As it is on the device; `None` where it counts no more.
    manifest: Mutex<Option<Manifest>>,
    work: Mutex<Work>,
    changed: Condvar,
}

#[derive(Default)]
struct Work {
    pending: bool,
    #[cfg(test)]
    busy: bool,
    stop: bool,
    /// Why the thread ended too early.
    failure: Option<String>,
}

/// Whether a thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goes {
    On,
    /// The index is closed, or counts no more.
    Out,
}

pub(super) fn start(sealer: Arc<Sealer>) -> io::Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("seen-keys index".to_owned());
    thread.spawn(move || {
        let failure = match catch_unwind(AssertUnwindSafe(|| sealer.run())) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => sealer.heal(&error),
            Err(panic) => format!("the index's thread panicked: {}", message(&*panic)),
        };
        tracing::error!(path = %sealer.directory.display(), failure, "the index cannot be written");
        sealer.fail(failure);
    })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_default()
}

impl Sealer {
    pub(super) fn new(
        directory: PathBuf,
        store_id: String,
        bounds: Bounds,
        manifest: Manifest,
        tiers: Tiers,
    ) -> Self {
        let current = Current::default();
        current.change(|now| *now = tiers);
        Self {
            directory,
            store_id,
            bounds,
            current,
            manifest: Mutex::new(Some(manifest)),
            work: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn manifest(&self) -> MutexGuard<'_, Option<Manifest>> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.work().failure.clone()
    }

    pub(super) fn fail(&self, failure: String) {
        self.work().failure.get_or_insert(failure);
        self.changed.notify_all();
    }

    pub(super) fn wake(&self) {
        self.work().pending = true;
        self.changed.notify_all();
    }

    pub(super) fn stop(&self) {
        self.work().stop = true;
        self.changed.notify_all();
    }

    pub(super) fn wait_for_room(&self) {
        let mut work = self.work();
        while self.current.get().frozen.is_some() && work.failure.is_none() && !work.stop {
            work = self
                .changed
                .wait(work)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        let work = self.work();
        !work.pending && !work.busy
    }

    pub(super) fn invalidate(&self) -> Result<(), StoreError> {
        let mut manifest = self.manifest();
        *manifest = None;
        manifest::remove(&self.directory)
    }

    /// Damage that a merge has met would be met again after every opening. Says in words what failed.
    fn heal(&self, error: &StoreError) -> String {
        let healed = match error {
            StoreError::IndexDamaged { .. } => self.invalidate(),
            _ => Ok(()),
        };
        match healed {
            Ok(()) => error.to_string(),
            Err(unhealed) => format!("{error}; {unhealed}"),
        }
    }

    fn run(&self) -> Result<(), StoreError> {
        loop {
            {
                let mut work = self.work();
                #[cfg(test)]
                {
                    work.busy = false;
                }
                while !work.pending && !work.stop {
                    work = self
                        .changed
                        .wait(work)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                work.pending = false;
                #[cfg(test)]
                {
                    work.busy = true;
                }
            }
            if self.seal_pending()? == Goes::Out || self.drop_expired()? == Goes::Out {
                return Ok(());
            }
            while let Some(runs) = merge::due(&self.current.get().runs, self.bounds.active_keys) {
                if merge::merge(self, runs)? == Goes::Out {
                    return Ok(());
                }
            }
        }
    }

    /// Seals what waits for it, and says whether to go on. Asked often within a long merge: the
    /// table that is filled meanwhile must not grow.
    pub(super) fn seal_pending(&self) -> Result<Goes, StoreError> {
        if self.work().stop {
            return Ok(Goes::Out);
        }
        let tiers = self.current.get();
        let Some(frozen) = &tiers.frozen else {
            return Ok(Goes::On);
        };
        let goes = self.seal(&tiers, &frozen.table, frozen.covered.clone())?;
        // Those who wait look under this lock.
        drop(self.work());
        self.changed.notify_all();
        Ok(goes)
    }

    /// Seals all that there is; the thread has ended.
    pub(super) fn seal_rest(&self, covered: Covered) -> Result<(), StoreError> {
        let tiers = self.current.get();
        if let Some(frozen) = &tiers.frozen {
            let goes = self.seal(&tiers, &frozen.table, frozen.covered.clone())?;
            if goes == Goes::Out {
                return Ok(());
            }
        }
        self.seal(&tiers, &tiers.active, covered).map(drop)
    }

    /// Makes a run of a table. A look-up finds its keys there until they are in the run.
    fn seal(&self, tiers: &Tiers, table: &Table, covered: Covered) -> Result<Goes, StoreError> {
        let Some(mut writer) = self.begin_run(table.len() as u64)? else {
            return Ok(Goes::Out);
        };
        table.each_in_order(|known| {
            if tiers.counts(known) {
                writer.push(known)?;
            }
            Ok::<(), StoreError>(())
        })?;
        let Written { run, offsets_max } = writer.finish()?;
        let mut manifest = self.manifest();
        let Some(known) = &mut *manifest else {
            return Ok(Goes::Out);
        };
        known.runs.push(Named {
            number: run.file.number,
            keys: run.keys,
            offsets_max,
        });
        known.covered = covered;
        known.write(&self.directory, &self.store_id)?;
        self.current.change(|tiers| {
            tiers.runs.push(run);
            tiers.frozen = None;
        });
        Ok(Goes::On)
    }

    /// Begins a run of a new number. `None` where the index counts no more.
    pub(super) fn begin_run(&self, keys: u64) -> Result<Option<Writer>, StoreError> {
        let number = {
            let mut manifest = self.manifest();
            let Some(manifest) = &mut *manifest else {
                return Ok(None);
            };
            manifest.next_run += 1;
            manifest.next_run
        };
        if !self.directory.exists() {
            let failed = || files::failed(&self.directory, "making the index's directory");
            std::fs::create_dir_all(&self.directory).map_err(failed())?;
            files::sync_parent(&self.directory).map_err(failed())?;
        }
        let path = path_of(&self.directory, number);
        Writer::create(&path, number, keys, self.bounds.shard_keys).map(Some)
    }

    /// Puts a run in the place of those that it was merged from.
    pub(super) fn replace(&self, merged: &[u64], written: Written) -> Result<Goes, StoreError> {
        let Written { run, offsets_max } = written;
        let named = Named {
            number: run.file.number,
            keys: run.keys,
            offsets_max,
        };
        let goes = self.name(|runs| {
            let at = runs.iter().position(|one| merged.contains(&one.number));
            runs.insert(at.unwrap_or(runs.len()), named);
            runs.retain(|one| !merged.contains(&one.number));
        })?;
        if goes == Goes::Out {
            return Ok(goes);
        }
        self.current.change(|tiers| {
            let at =
                |one: &Run| merged.contains(&one.file.number) || one.file.number == run.file.number;
            let first = tiers.runs.iter().position(at).unwrap_or(tiers.runs.len());
            tiers.runs.retain(|one| !at(one));
            tiers.runs.insert(first, run.clone());
        });
        self.remove(merged)
    }

    /// Drops runs of which nothing counts any more.
    fn drop_expired(&self) -> Result<Goes, StoreError> {
        let tiers = self.current.get();
        let expired = |run: &Named| {
            run.offsets_max.iter().all(|(id, offset)| {
                let floor = tiers.floors.get(&crate::store::PartitionId(*id));
                floor.is_some_and(|floor| *offset < floor.get())
            })
        };
        let mut dropped = Vec::new();
        let goes = self.name(|runs| {
            runs.retain(|run| {
                let stays = !expired(run);
                if !stays {
                    dropped.push(run.number);
                }
                stays
            });
        })?;
        if goes == Goes::Out || dropped.is_empty() {
            return Ok(goes);
        }
        self.current
            .change(|tiers| tiers.runs.retain(|run| !dropped.contains(&run.file.number)));
        self.remove(&dropped)
    }

    /// Changes which runs count, on the device.
    fn name(&self, change: impl FnOnce(&mut Vec<Named>)) -> Result<Goes, StoreError> {
        let mut manifest = self.manifest();
        let Some(known) = &mut *manifest else {
            return Ok(Goes::Out);
        };
        let before = known.runs.clone();
        change(&mut known.runs);
        if known.runs != before {
            known.write(&self.directory, &self.store_id)?;
        }
        Ok(Goes::On)
    }

    /// Removes runs that are not named any more. Look-ups that read them go on doing so.
    fn remove(&self, numbers: &[u64]) -> Result<Goes, StoreError> {
        for number in numbers {
            let path = path_of(&self.directory, *number);
            writer::remove(&path).map_err(files::failed(&path, "removing a run of the index"))?;
        }
        Ok(Goes::On)
    }
}
