//! What the suite of stores in directories wants to know of sled.

use std::ops::Range;
use std::path::Path;

use super::log::{SEGMENT_BYTES, Sled};
use super::{Durability, SledStore, StoreError};
use crate::store::directory::Log as _;

pub(in crate::store) type Kept = SledStore;

pub(in crate::store) const DURABILITIES: &[Durability] =
    &[Durability::Power, Durability::Process, Durability::None];
/// Bytes of its file of which each by itself is worth a trial.
pub(in crate::store) const HEADER: Range<u64> = 0..0;

pub(in crate::store) fn open(path: &Path, durability: Durability) -> Result<Kept, StoreError> {
    SledStore::options().durability(durability).open(path)
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
