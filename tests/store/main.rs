//! The sled store as other processes see it: killed, locked, out of space, out of permissions.
#![cfg(feature = "sled")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

mod child;
#[path = "../support/files.rs"]
mod files;
mod first_format;
mod full_disk;
mod kept;
mod kill;
mod lock;
mod model;
mod permissions;
mod seeds;
mod size;
#[path = "../support/skip.rs"]
mod skip;
mod sync;
mod trace;
