//! Letters to write, and a dead-letter topic as its readers find it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use idempotent_consumer::testkit::{Failed, Produced};
use idempotent_consumer::{Coordinates, DeadLetterError, TopicPartition};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{Headers as _, OwnedMessage};
use rdkafka::{ClientConfig, Message as _, Offset, TopicPartitionList};
use tokio::runtime::Runtime;

use crate::broker::DEADLINE;
use crate::support::kafka::Kafka;

pub(crate) const TIMESTAMP_MS: i64 = 1_700_000_000_123;

pub(crate) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
}

/// A consumer's configuration.
pub(crate) fn consumer(bootstrap: &str) -> ClientConfig {
    settings(&[
        ("bootstrap.servers", bootstrap),
        ("group.id", "billing"),
        ("reconnect.backoff.max.ms", "300"),
    ])
}

pub(crate) fn settings(settings: &[(&str, &str)]) -> ClientConfig {
    let mut config = ClientConfig::new();
    for (setting, value) in settings {
        config.set(*setting, *value);
    }
    config
}

pub(crate) fn failed(offset: i64, record: Produced<'_>) -> Failed<'_> {
    Failed {
        at: Coordinates::new(TopicPartition::new("orders", 7), offset),
        record,
        timestamp_ms: Some(TIMESTAMP_MS),
        error: "no such account",
        attempts: 5,
    }
}

pub(crate) fn keyed<'a>(key: &'a [u8], value: &'a [u8]) -> Produced<'a> {
    Produced {
        key: Some(key),
        value: Some(value),
        ..Produced::default()
    }
}

/// The message of an error that must have come before its time.
pub(crate) fn error(written: Result<(), DeadLetterError>) -> String {
    let error = written.expect_err("nothing was confirmed");
    assert!(matches!(error, DeadLetterError::Letter { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("orders[7]@"), "{text}");
    text
}

fn client(kafka: &Kafka) -> BaseConsumer {
    ClientConfig::new()
        .set("bootstrap.servers", kafka.bootstrap())
        .set("group.id", "readers-of-letters")
        .set("enable.auto.commit", "false")
        .set("allow.auto.create.topics", "false")
        .create()
        .unwrap()
}

/// The first `count` letters of a topic, those of a partition in their order.
pub(crate) fn read(kafka: &Kafka, topic: &str, count: usize) -> Vec<OwnedMessage> {
    let client = client(kafka);
    let mut all = TopicPartitionList::new();
    for partition in 0..i32::try_from(kafka.end_offsets(topic).len()).unwrap() {
        all.add_partition_offset(topic, partition, Offset::Beginning)
            .unwrap();
    }
    client.assign(&all).unwrap();
    let end = Instant::now() + DEADLINE;
    let mut found = Vec::new();
    while found.len() < count {
        assert!(Instant::now() < end, "{} of {count} letters", found.len());
        if let Some(letter) = client.poll(Duration::from_millis(100)) {
            found.push(letter.unwrap().detach());
        }
    }
    found
}

pub(crate) fn header_list(letter: &OwnedMessage) -> Vec<(String, Option<Vec<u8>>)> {
    letter.headers().map_or_else(Vec::new, |headers| {
        let owned = headers
            .iter()
            .map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec)));
        owned.collect()
    })
}

/// Whether there is such a topic.
pub(crate) fn is_there(kafka: &Kafka, topic: &str) -> bool {
    let metadata = client(kafka).fetch_metadata(Some(topic), DEADLINE).unwrap();
    metadata
        .topics()
        .iter()
        .any(|found| found.name() == topic && found.error().is_none())
}
