//! The store `postgres` on a real server: the message table, its crashes, its owners.
#![cfg(feature = "postgres")]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

#[path = "../support/postgres.rs"]
mod postgres;
#[path = "../support/mod.rs"]
mod support;

mod contract;
mod server;
mod shared;
mod wire;

use support::skip;
