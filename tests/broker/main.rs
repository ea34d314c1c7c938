//! The consumer on a real Apache Kafka: what the embedded broker cannot show.
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
#[path = "../support/dump.rs"]
mod dump;
#[path = "../support/feed.rs"]
mod feed;
#[path = "../support/mod.rs"]
mod support;

mod batches;
mod child;
mod compaction;
mod dead_letter_faults;
mod dead_letter_members;
mod dead_letters;
mod deleted;
mod faults;
mod freezes;
mod guarded;
mod history;
mod java_producer;
mod kills;
mod large_record;
mod letters;
mod member;
mod more_partitions;
mod rebalances;
mod restart;
mod rewinds;
mod starts;
mod static_members;
mod timestamps;
mod transactions;

/// Members that die are noticed soon, a heartbeat of the broker's own protocol does not take
/// five seconds, and the log cleaner looks at once.
const BROKER_SETTINGS: &[&str] = &[
    "group.min.session.timeout.ms=1000",
    "group.consumer.min.heartbeat.interval.ms=200",
    "group.consumer.heartbeat.interval.ms=200",
    "group.consumer.min.session.timeout.ms=3000",
    "group.consumer.session.timeout.ms=30000",
    "log.cleaner.backoff.ms=100",
];
