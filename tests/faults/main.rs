//! Groups of real processes on a real Kafka, and everything that can go wrong with them. What
//! they do is told to `testkit::history`, which says whether it was right.
#![cfg(all(feature = "testkit", feature = "sled"))]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[path = "../support/admin.rs"]
mod admin;
#[path = "../support/broker.rs"]
mod broker;
#[path = "../support/feed.rs"]
mod feed;
#[path = "../support/mod.rs"]
mod support;

mod chance;
mod crash_loop;
mod fleet;
mod member;
mod nemesis;
mod process;
mod protocol;
mod three_processes;
mod weather;

/// A dead member is noticed soon where its settings say so, and a heartbeat of the broker's own
/// protocol does not take five seconds.
const BROKER_SETTINGS: &[&str] = &[
    "group.min.session.timeout.ms=1000",
    "group.consumer.min.heartbeat.interval.ms=200",
    "group.consumer.heartbeat.interval.ms=200",
    "group.consumer.min.session.timeout.ms=1500",
    "group.consumer.session.timeout.ms=30000",
];
