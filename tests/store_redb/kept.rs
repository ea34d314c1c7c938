//! What these tests have to know of the store in redb.

use std::path::Path;

use idempotent_consumer::store::{Durability, RedbStore, StoreError};

pub(crate) type Kept = RedbStore;

pub(crate) fn open(path: &Path, durability: Durability) -> Result<Kept, StoreError> {
    RedbStore::options().durability(durability).open(path)
}

/// Below the fixtures.
pub(crate) const FIXTURE: &str = "store-redb-v1";
/// Before redb doubles its file for the first time, and before the third and the fourth time.
pub(crate) const FULL_AT_BLOCKS: [&str; 3] = ["3500", "16384", "40000"];
pub(crate) const FILES: &[&str] = &["stamp", "high-water", "lock", "log.redb"];
pub(crate) const DIRECTORIES: &[&str] = &[""];
/// The log's file as a trace of system calls names it.
pub(crate) const TRACED: &str = "/log.redb>";
