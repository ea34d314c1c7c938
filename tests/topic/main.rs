//! `dedup topic` on a real Apache Kafka, as its operator runs it: the real binary, killed and
//! stopped, its output read with Kafka's own console consumer.
#![cfg(all(feature = "testkit", feature = "service", unix))]
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

// A million records, and kills while they are copied.
mod kills;
// Partitions that move from one instance to another.
mod members;
// What a record is, and what of it is kept.
mod records;
// Records that the output does not take.
mod rejected;
// What is refused before anything is read.
mod refusals;
// /healthz, /readyz, /metrics, and the end.
mod running;
// The process under test.
mod service;
// What the console consumer reads.
mod written;

/// Members that die are noticed soon, and a compacted topic is cleaned at once.
const BROKER_SETTINGS: &[&str] = &[
    "group.min.session.timeout.ms=1000",
    "log.cleaner.backoff.ms=100",
];
