//! The consumer on a real Apache Kafka: what the embedded broker cannot show.
#![cfg(all(feature = "testkit", feature = "sled"))]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod admin;
mod batches;
mod broker;
mod child;
mod compaction;
mod dead_letter_faults;
mod dead_letters;
mod deleted;
mod faults;
mod feed;
mod freezes;
mod history;
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
mod transactions;
