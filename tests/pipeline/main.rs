//! The consumer on the embedded broker.
#![cfg(feature = "testkit")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

mod changed_topic;
mod concurrent;
mod crashes;
mod dead_letter_copies;
mod dead_letters;
mod decisions;
mod doubt;
mod durability;
mod failures;
#[path = "../support/files.rs"]
mod files;
#[cfg(feature = "sled")]
mod forget;
mod gates;
mod guarded;
mod hostile;
mod identities;
mod letters;
mod members;
mod offsets;
mod parallel;
mod pulling;
mod quiet;
mod raw;
mod refusals;
mod replays;
mod restarts;
mod restore;
mod retention;
mod scripted;
mod shutdown;
mod stalled;
mod stops;
mod support;
mod takeovers;
mod timestamps;
mod turns;
mod undone;
