//! What the suite of stores in directories wants to know of redb.

use std::ops::Range;
use std::path::Path;

use redb::ReadableTable as _;

use super::log::{RECORDS, Redb};
use super::{Durability, RedbStore, StoreError};
use crate::store::directory::Log as _;

pub(in crate::store) type Kept = RedbStore;

pub(in crate::store) const DURABILITIES: &[Durability] = &[Durability::Power, Durability::Process];
/// The header and the two commit slots, which redb believes in part without a checksum.
pub(in crate::store) const HEADER: Range<u64> = 0..320;

pub(in crate::store) fn open(path: &Path, durability: Durability) -> Result<Kept, StoreError> {
    RedbStore::options().durability(durability).open(path)
}

/// redb itself.
pub(in crate::store) struct Raw(redb::Database);

impl Raw {
    pub(in crate::store) fn open(store: &Path) -> Self {
        Self(redb::Database::open(store.join(Redb::PLACE)).unwrap())
    }

    pub(in crate::store) fn records(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let read = self.0.begin_read().unwrap();
        let records = read.open_table(RECORDS).unwrap();
        let records = records.iter().unwrap().map(Result::unwrap);
        records
            .map(|(key, value)| (key.value().to_vec(), value.value().to_vec()))
            .collect()
    }

    pub(in crate::store) fn insert(&self, key: &[u8], value: &[u8]) {
        let write = self.0.begin_write().unwrap();
        drop(write.open_table(RECORDS).unwrap().insert(key, value));
        write.commit().unwrap();
    }

    pub(in crate::store) fn remove(&self, key: &[u8]) {
        let write = self.0.begin_write().unwrap();
        drop(write.open_table(RECORDS).unwrap().remove(key).unwrap());
        write.commit().unwrap();
    }

    pub(in crate::store) fn close(self) {
        drop(self);
    }
}
