//! What needs no broker to be seen.

use std::time::{Duration, Instant};

use super::{Cause, DeadLetter, DeadLetterError, Letters};
use crate::record::Record;
use crate::source::ClientConfig;

/// Nobody listens there.
fn nowhere() -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", "127.0.0.1:1")
        .set("group.id", "billing");
    config
}

#[test]
fn brokers_that_are_not_to_be_reached_end_the_start_when_its_time_is_up() {
    let begun = Instant::now();
    let limit = Duration::from_millis(300);
    let opened = Letters::open(
        &DeadLetter::to_topic("orders.DLT"),
        &nowhere(),
        limit,
        &|| false,
    );
    let Err(error @ DeadLetterError::Topic { .. }) = opened.map(|_| ()) else {
        panic!("it was opened")
    };
    assert!(error.to_string().contains("orders.DLT"), "{error}");
    assert!(begun.elapsed() >= limit);
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_start_that_is_given_up_is_no_error() {
    let opened = Letters::open(
        &DeadLetter::to_topic("orders.DLT"),
        &nowhere(),
        Duration::from_secs(3600),
        &|| true,
    );
    assert!(opened.unwrap().is_none());
}

/// Compiles: a letter may be written from a task that moves between threads.
fn _writing_is_send(letters: &Letters, record: &Record<'_>, cause: &Cause<'_>) -> impl Send {
    letters.write(record, cause)
}
