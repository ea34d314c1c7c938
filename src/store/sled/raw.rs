//! What the suite of stores in directories wants to know of sled.

use std::path::Path;

use super::log::{SEGMENT_BYTES, Sled};
use super::{Bounds, Durability, SledStore, StoreError};
use crate::store::directory::Log as _;
#[cfg(feature = "redb")]
use crate::store::directory::{Copied, DirectoryStore, Engine};

pub(in crate::store) type Kept = SledStore;

pub(in crate::store) const DURABILITIES: &[Durability] =
    &[Durability::Power, Durability::Process, Durability::None];

/// Places in its files that are each worth a trial of their own: none.
pub(in crate::store) fn header() -> impl Iterator<Item = u64> {
    std::iter::empty()
}

/// Pages of its files that are each worth a trial: none, its checksums are not kept apart.
pub(in crate::store) fn pages(_len: u64) -> impl Iterator<Item = u64> {
    std::iter::empty()
}

pub(in crate::store) fn open(path: &Path, durability: Durability) -> Result<Kept, StoreError> {
    SledStore::options().durability(durability).open(path)
}

/// With so small bounds that keys are sealed and merged all the time.
pub(in crate::store) fn open_small(
    path: &Path,
    durability: Durability,
) -> Result<Kept, StoreError> {
    let mut options = SledStore::options().durability(durability);
    options.bounds = Bounds {
        active_keys: 50,
        closing_keys: 1,
        shard_keys: 40,
    };
    options.open(path)
}

#[cfg(feature = "redb")]
pub(in crate::store) fn copy_from<E: Engine>(
    source: &DirectoryStore<E>,
    to: &Path,
) -> Result<Copied, StoreError> {
    SledStore::options().copy_from(source, to)
}

/// sled itself, with the store's settings.
pub(in crate::store) struct Raw(sled::Db);

impl Raw {
    pub(in crate::store) fn open(store: &Path) -> Self {
        let config = sled::Config::new()
            .path(store.join(Sled::PLACE))
            .segment_size(SEGMENT_BYTES);
        // Its lock is let go of a little after the store was dropped.
        let tries = std::iter::repeat_with(|| config.open());
        let mut tries = tries.inspect(|_| std::thread::yield_now());
        Self(tries.find_map(Result::ok).unwrap())
    }

    pub(in crate::store) fn records(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let records = self.0.iter().map(Result::unwrap);
        records
            .map(|(key, value)| (key.to_vec(), value.to_vec()))
            .collect()
    }

    pub(in crate::store) fn insert(&self, key: &[u8], value: &[u8]) {
        self.0.insert(key, value).unwrap();
    }

    pub(in crate::store) fn remove(&self, key: &[u8]) {
        self.0.remove(key).unwrap().unwrap();
    }

    pub(in crate::store) fn close(self) {
        self.0.flush().unwrap();
    }
}
