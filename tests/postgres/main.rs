//! The store `postgres` on a real server: the message table, its crashes, its owners.
#![cfg(feature = "postgres")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

#[allow(dead_code, reason = "each test binary uses a part of it")]
#[path = "../faults/chance.rs"]
mod chance;
#[path = "../support/postgres.rs"]
mod postgres;
#[path = "../support/mod.rs"]
mod support;

mod article;
mod child;
mod conflicts;
mod contract;
mod crashes;
mod database;
mod fleet;
mod full_disk;
mod handlers;
mod limits;
mod member;
mod retention;
mod round_trips;
mod rounds;
mod schema;
mod server;
mod shared;
mod wire;

use support::skip;
