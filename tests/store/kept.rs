//! What these tests have to know of the store in sled.

use std::path::Path;

use idempotent_consumer::store::{Durability, SledStore, StoreError};

pub(crate) type Kept = SledStore;

pub(crate) fn open(path: &Path, durability: Durability) -> Result<Kept, StoreError> {
    SledStore::options().durability(durability).open(path)
}

/// Below the fixtures.
pub(crate) const FIXTURE: &str = "store-v1";
/// Within the first of sled's segments, at its border, in the third.
pub(crate) const FULL_AT_BLOCKS: [&str; 3] = ["1500", "16384", "40000"];
pub(crate) const FILES: &[&str] = &["stamp", "high-water", "lock", "log/db", "log/conf"];
/// Inner ones first.
pub(crate) const DIRECTORIES: &[&str] = &["log/blobs", "log", ""];
/// The log's file as a trace of system calls names it.
pub(crate) const TRACED: &str = "/log/db>";
