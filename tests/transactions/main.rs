//! Records answered with records on a real Kafka: what is sent, its marks and its offsets are all
//! there or none of them.
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

mod answers;
mod child;
mod dying;
mod hanging;
mod kills;
mod lost_replies;
mod member;
mod moves;
mod refusals;
mod stages;
mod topics;

/// Members that die are noticed soon, a heartbeat of the broker's own protocol does not take five
/// seconds, and transactions that are over their time are ended at once.
const BROKER_SETTINGS: &[&str] = &[
    "group.min.session.timeout.ms=1000",
    "group.consumer.min.heartbeat.interval.ms=200",
    "group.consumer.heartbeat.interval.ms=200",
    "group.consumer.min.session.timeout.ms=1500",
    "group.consumer.session.timeout.ms=3000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=250",
];
