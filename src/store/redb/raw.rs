//! What the suite of stores in directories wants to know of redb.

use std::path::Path;

use redb::ReadableTable as _;

use super::log::{RECORDS, Redb};
use super::{Bounds, Durability, RedbStore, StoreError};
use crate::store::directory::{Copied, DirectoryStore, Engine, Log as _};

pub(in crate::store) type Kept = RedbStore;

pub(in crate::store) const DURABILITIES: &[Durability] = &[Durability::Power, Durability::Process];

/// Places in its file that are each worth a trial of their own: the header, which redb believes
/// without a checksum; of the two commit slots behind it the sizes of the pages that they name, and
/// some of the rest.
pub(in crate::store) fn header() -> impl Iterator<Item = u64> {
    let sizes = [79, 111, 207, 239];
    (0..40).chain(sizes).chain((40..320).step_by(9))
}

/// Pages of its file that are each worth a trial: redb keeps books of its own in some of them.
pub(in crate::store) fn pages(len: u64) -> impl Iterator<Item = u64> {
    (0..len).step_by(7 * 4096)
}

pub(in crate::store) fn open(path: &Path, durability: Durability) -> Result<Kept, StoreError> {
    RedbStore::options().durability(durability).open(path)
}

/// With so small bounds that keys are sealed and merged all the time.
pub(in crate::store) fn open_small(
    path: &Path,
    durability: Durability,
) -> Result<Kept, StoreError> {
    let mut options = RedbStore::options().durability(durability);
    options.bounds = Bounds {
        active_keys: 50,
        closing_keys: 1,
        shard_keys: 40,
    };
    options.open(path)
}

pub(in crate::store) fn copy_from<E: Engine>(
    source: &DirectoryStore<E>,
    to: &Path,
) -> Result<Copied, StoreError> {
    RedbStore::options().copy_from(source, to)
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
