//! The commit log in sled: the only file that names the engine.
//!
//! Every call is made behind `catch_unwind`: sled 0.34 panics on damaged files where it could
//! answer (28 of 60 trials).

use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::store::directory::{Engine, Failure, Log, Record, files, guarded};
use crate::store::{Durability, StoreError};

/// How long a lock that a closing store still holds is waited for: sled lets go of it on a thread
/// of its own, a little after its last handle is dropped.
const LOCK_WAIT: Duration = Duration::from_secs(2);
/// Four items must fit a segment, else sled writes an item to a file of its own that `flush` does
/// not cover. A node holds up to 17 records before it splits, and a unit is bounded by
/// `UNIT_BYTES_MAX`: 17 of them stay below the quarter of 8 MiB.
pub(in crate::store) const SEGMENT_BYTES: usize = 8 << 20;
/// sled drops nothing from a part of its cache before that was accessed 64 times, and there are 256
/// parts, by the number of the page: of a log that is only appended to, where a node sees some
/// twenty accesses and is never touched again, hundreds of megabytes stayed. With so many more each
/// node takes its own part to the 64.
const ACCESSES_AN_INSERT: usize = 6;
const NAME: &str = "sled";

/// A log in sled.
pub struct Sled {
    db: sled::Db,
    /// sled's own data file, opened once more to be synced.
    data: File,
    directory: PathBuf,
    durability: Durability,
}

impl Sled {
    pub(super) fn open(
        directory: &Path,
        durability: Durability,
        cache_bytes: u64,
    ) -> Result<Self, StoreError> {
        // With `Power` every commit syncs by itself; else sled's own thread limits what a power
        // cut (`Process`) or a dead process (`None`) can undo.
        let flush_every_ms = match durability {
            Durability::Power => None,
            Durability::Process | Durability::None => Some(500),
        };
        let config = sled::Config::new()
            .path(directory)
            .cache_capacity(cache_bytes)
            .segment_size(SEGMENT_BYTES)
            .flush_every_ms(flush_every_ms);
        let give_up = Instant::now() + LOCK_WAIT;
        let db = loop {
            match guarded(NAME, "opening the log", || config.open()) {
                Ok(db) => break db,
                Err(Failure::Engine(_, sled::Error::Io(error)))
                    if error.kind() == std::io::ErrorKind::WouldBlock
                        || error.to_string().contains("could not acquire lock") =>
                {
                    if Instant::now() >= give_up {
                        return Err(StoreError::Locked {
                            path: directory.to_owned(),
                            by: String::new(),
                        });
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(Failure::Engine(_, sled::Error::Io(error))) => {
                    return Err(files::unusable(directory)(error));
                }
                Err(failure) => return Err(files::damaged(directory, failure.to_string())),
            }
        };
        let path = directory.join("db");
        let data = File::open(&path).map_err(files::unusable(&path))?;
        // Whatever the durability: without these names the next opening finds no log at all, and
        // that is damage.
        for path in [path, directory.to_owned()] {
            files::sync_parent(&path).map_err(files::failed(&path, "syncing a directory"))?;
        }
        Ok(Self {
            db,
            data,
            directory: directory.to_owned(),
            durability,
        })
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.guarded("flushing the log", || self.db.flush())
            .map(drop)
    }

    fn guarded<T>(
        &self,
        operation: &'static str,
        call: impl FnOnce() -> sled::Result<T>,
    ) -> Result<T, StoreError> {
        guarded(NAME, operation, call)
            .map_err(|failure| files::failed(&self.directory, operation)(failure))
    }
}

impl Engine for Sled {}

impl Log for Sled {
    const NAME: &'static str = NAME;
    const PLACE: &'static str = "log";
    const DATA: &'static str = "db";

    type Bytes = sled::IVec;

    fn scan_from(
        &self,
        from: &[u8],
        mut each: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        let mut records = self.db.range(from..);
        loop {
            let next = guarded(NAME, "reading the log", || records.next().transpose());
            match next {
                Ok(Some((key, value))) => {
                    if each(&key, &value)?.is_break() {
                        return Ok(());
                    }
                }
                Ok(None) => return Ok(()),
                Err(failure) => return Err(files::damaged(&self.directory, failure.to_string())),
            }
        }
    }

    fn first_from(&self, from: &[u8]) -> Result<Option<Record<sled::IVec>>, StoreError> {
        self.guarded("reading the log", || {
            self.db.range(from..).next().transpose()
        })
    }

    fn insert(&self, key: &[u8], value: Vec<u8>) -> Result<(), StoreError> {
        self.guarded("writing the log", || {
            self.db.insert(key, value)?;
            for _ in 0..ACCESSES_AN_INSERT {
                self.db.contains_key(key)?;
            }
            Ok(())
        })
    }

    fn remove(&self, key: &[u8]) -> Result<(), StoreError> {
        self.guarded("taking a record out of the log", || self.db.remove(key))
            .map(drop)
    }

    fn harden(&self) -> Result<(), StoreError> {
        match self.durability {
            Durability::None => Ok(()),
            Durability::Process => self.flush(),
            Durability::Power => self.sync(),
        }
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.flush()?;
        // On Linux sled's flush is `sync_file_range`: the pages are on their way, but neither is
        // the device asked to keep them nor the file's size. This is what survives a power cut.
        self.data
            .sync_data()
            .map_err(files::failed(&self.directory, "syncing the log"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_the_engine_keeps_is_waited_for_but_not_for_ever() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("log");
        let open = || Sled::open(&directory, Durability::Process, 1 << 20);
        let holder = open().unwrap();
        let start = Instant::now();
        let Err(error) = open() else {
            panic!("opened twice");
        };
        assert!(matches!(error, StoreError::Locked { .. }), "{error}");
        assert!(start.elapsed() >= LOCK_WAIT);
        assert!(start.elapsed() < 100 * LOCK_WAIT);
        drop(holder);
        open().unwrap();
    }
}
