//! The store in redb as other processes see it: the tests of `tests/store`, and what only redb has.
#![cfg(feature = "redb")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

#[path = "../store/child.rs"]
mod child;
#[path = "../support/files.rs"]
mod files;
#[path = "../store/first_format.rs"]
mod first_format;
#[path = "../store/full_disk.rs"]
mod full_disk;
mod kept;
#[path = "../store/kill.rs"]
mod kill;
#[path = "../store/lock.rs"]
mod lock;
#[path = "../store/model.rs"]
mod model;
#[path = "../store/permissions.rs"]
mod permissions;
#[path = "../store/size.rs"]
mod size;
#[path = "../support/skip.rs"]
mod skip;
mod sync;
#[path = "../store/trace.rs"]
mod trace;
