//! The command-line tools, driven as a user drives them: the real binaries, real files, pipes
//! and signals. Each test has a directory of its own and waits on conditions, never on the clock.
#![cfg(all(feature = "cli", unix))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers are tests too"
)]

#[path = "../support/skip.rs"]
mod skip;
mod support;

// What counts as a line, and as the same line.
mod lines;
// Side by side with the shell script.
mod script;
// A part of a line is its key.
mod keys;
// Lines that end in NUL.
mod null;
// Keys that are forgotten.
mod ttl;
// Made-up input.
mod random;
// What a run says about itself.
mod figures;
// Files that end in the middle of a line.
mod mending;
// Paths, links, pipes, refusals.
mod paths;
// Starts that are refused leave nothing behind.
mod refusals;
// Full disks, limits, readers that go away, and the order of writes.
mod faults;
// Killed at random moments.
mod crash;
// Slow input, and two at a time.
mod live;
// Help, version, summary, exit codes.
mod usage;
// The lab's shipping handler.
mod ship;
// The lab's shipping handler, each order once.
#[cfg(feature = "sled")]
mod ship_idempotent;
// The state in a store.
#[cfg(feature = "sled")]
mod stored;
// A consumer's store, looked at and made to forget.
#[cfg(feature = "sled")]
mod store;
// A service between two topics.
#[cfg(feature = "service")]
mod topic;
