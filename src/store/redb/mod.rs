//! A store with its log in redb.

mod backend;
mod log;
#[cfg(test)]
pub(super) mod raw;

use std::path::Path;
use std::sync::Arc;

use self::log::Redb;
use super::directory::{Copied, DirectoryStore, Engine, copy, open};
use super::index::Bounds;
use super::{Durability, StoreError};
use crate::clock::{Clock, SystemClock};

/// A directory with its log in redb 2.6: what the engine is maintained and checksums every page.
///
/// It promises what [`SledStore`](super::SledStore) does, under the same records; the README says
/// when to choose which. Another program must not write to its file, redb's own tools included.
pub type RedbStore = DirectoryStore<Redb>;

/// How to open a [`RedbStore`].
#[derive(Clone, Debug)]
pub struct RedbOptions {
    durability: Durability,
    cache_bytes: usize,
    create: bool,
    bounds: Bounds,
    clock: Arc<dyn Clock>,
}

impl Default for RedbOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Power,
            cache_bytes: 64 << 20,
            create: true,
            bounds: Bounds::default(),
            clock: Arc::new(SystemClock::new()),
        }
    }
}

impl RedbOptions {
    /// What a crash may undo. [`Durability::Power`] by default.
    ///
    /// [`Durability::Process`] is redb's `Eventual`: on Linux it makes the same system calls as
    /// `Power`, one `fdatasync` a commit, and is no faster; on macOS it leaves out the wait for
    /// the device. [`Durability::None`] is refused: redb keeps such commits in the memory of the
    /// process until a durable one follows, however long that takes.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// redb's page cache in bytes, nine tenths of it for reading. 64 MiB by default: records are
    /// read only when the store is opened and when a result is looked up. redb's own default is
    /// 1 GiB.
    #[must_use]
    pub fn cache_bytes(mut self, cache_bytes: usize) -> Self {
        self.cache_bytes = cache_bytes;
        self
    }

    /// Whether a new store is made where there is none: true by default. With `false` a directory
    /// that is mistyped, or not mounted, begins no empty store.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// The clock by which commits without record times are dated, and future ones bounded: the
    /// [system's](SystemClock) by default.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Opens the store at `directory`, or makes a new one where there is nothing.
    ///
    /// Compares every page of the log with its checksum, and reads the records that the index does
    /// not cover, with progress in the log.
    ///
    /// # Errors
    /// [`StoreError::Locked`], [`StoreError::UnknownFormat`], [`StoreError::OtherEngine`],
    /// [`StoreError::Damaged`], or [`StoreError::Unusable`] for a directory that cannot be used or
    /// is no store; of the kind [`NotFound`](std::io::ErrorKind::NotFound) where none is there and
    /// none is to be [made](RedbOptions::create). [`StoreError::Misused`] for
    /// [`Durability::None`].
    pub fn open(&self, directory: impl AsRef<Path>) -> Result<RedbStore, StoreError> {
        if self.durability == Durability::None {
            return Err(StoreError::Misused(
                "a RedbStore has no Durability::None, which redb keeps in memory until something \
                 durable follows: choose Process or Power, or a MemoryStore",
            ));
        }
        let (durability, create) = (self.durability, self.create);
        let store = open::open(directory.as_ref(), durability, create, self.bounds, |log| {
            Redb::open(log, self.durability, self.cache_bytes)
        })?;
        Ok(store.with_clock(Arc::clone(&self.clock)))
    }

    /// Copies a store into a new one at `directory`, which must be empty or not there. Nothing of
    /// the source is changed; both must not be used as the same store afterwards.
    ///
    /// The copy holds the same records, byte for byte, owner, hash key, heads, gaps and doubt. It
    /// is opened again and compared with the source before it counts as a store; an end in the
    /// middle leaves a directory that is refused. What is copied is
    /// on the device when this returns, whatever the durability.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] for a directory that holds something,
    /// [`StoreError::CopyDiffers`], or where the source cannot be read or the copy not be written.
    pub fn copy_from<E: Engine>(
        &self,
        source: &DirectoryStore<E>,
        directory: impl AsRef<Path>,
    ) -> Result<Copied, StoreError> {
        copy::copy(source, directory.as_ref(), |log| {
            Redb::open(log, Durability::Power, self.cache_bytes)
        })
    }

    /// What [`copy_from`](RedbOptions::copy_from) would copy. Nothing is written.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] for a directory that holds something, or where the source cannot be
    /// read.
    pub fn plan_copy<E: Engine>(
        &self,
        source: &DirectoryStore<E>,
        directory: impl AsRef<Path>,
    ) -> Result<Copied, StoreError> {
        copy::plan(source, directory.as_ref())
    }
}

impl RedbStore {
    /// Opens the store at `directory` with the default [options](RedbOptions), or makes a new one.
    ///
    /// # Errors
    /// As [`RedbOptions::open`].
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::options().open(directory)
    }

    /// Options that differ from the defaults.
    #[must_use]
    pub fn options() -> RedbOptions {
        RedbOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_durability_that_redb_has_not_is_refused_before_anything_is_made() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("seen");
        let options = RedbStore::options().durability(Durability::None);
        let error = options.open(&path).err().unwrap();
        assert!(matches!(error, StoreError::Misused(_)), "{error}");
        assert!(error.to_string().contains("Process or Power"), "{error}");
        assert!(!path.exists());
    }
}
