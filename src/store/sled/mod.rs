//! The default store: its log in sled.

mod log;
#[cfg(test)]
pub(super) mod raw;

use std::path::Path;
use std::sync::Arc;

use self::log::Sled;
use super::directory::{Copied, DirectoryStore, Engine, copy, open};
use super::index::Bounds;
use super::{Durability, StoreError};
use crate::clock::{Clock, SystemClock};

/// The default store, a directory with its log in sled 0.34.
pub type SledStore = DirectoryStore<Sled>;

/// How to open a [`SledStore`].
#[derive(Clone, Debug)]
pub struct SledOptions {
    durability: Durability,
    cache_bytes: u64,
    create: bool,
    bounds: Bounds,
    clock: Arc<dyn Clock>,
}

impl Default for SledOptions {
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

impl SledOptions {
    /// What a crash may undo. [`Durability::Power`] by default.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// sled's page cache in bytes, counted by the size on disk. 64 MiB by default: records are
    /// read only when the store is opened and when a result is looked up. sled's own default of
    /// 1 GiB was measured to overshoot several times over. Whatever is set, one node stays in each of
    /// 256 parts, nine commit records: 60 MB where a record holds a thousand keys.
    #[must_use]
    pub fn cache_bytes(mut self, cache_bytes: u64) -> Self {
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
    /// Reads the filters of what is sealed, and the records that are not; where that takes over a
    /// second, it says in the log how far it is.
    ///
    /// # Errors
    /// [`StoreError::Locked`], [`StoreError::UnknownFormat`], [`StoreError::OtherEngine`],
    /// [`StoreError::Damaged`], or [`StoreError::Unusable`] for a directory that cannot be used or
    /// is no store; of the kind [`NotFound`](std::io::ErrorKind::NotFound) where none is there and
    /// none is to be [made](SledOptions::create).
    pub fn open(&self, directory: impl AsRef<Path>) -> Result<SledStore, StoreError> {
        let (durability, create) = (self.durability, self.create);
        let store = open::open(directory.as_ref(), durability, create, self.bounds, |log| {
            Sled::open(log, self.durability, self.cache_bytes)
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
            Sled::open(log, Durability::Power, self.cache_bytes)
        })
    }

    /// What [`copy_from`](SledOptions::copy_from) would copy. Nothing is written.
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

impl SledStore {
    /// Opens the store at `directory` with the default [options](SledOptions), or makes a new one.
    ///
    /// # Errors
    /// As [`SledOptions::open`].
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::options().open(directory)
    }

    /// Options that differ from the defaults.
    #[must_use]
    pub fn options() -> SledOptions {
        SledOptions::default()
    }
}

#[cfg(test)]
mod tests;
