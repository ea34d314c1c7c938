//! What readers of a topic find.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::{Headers as _, Message as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::admin;
use crate::broker::{DEADLINE, SharedBroker};
use crate::support::kafka::Kafka;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) partition: i32,
    pub(crate) key: Option<String>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) timestamp_ms: Option<i64>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Committed,
    Uncommitted,
}

/// All that a reader finds, from the beginning to the end that it is shown.
pub(crate) fn read(kafka: &Kafka, topic: &str, reader: Reader) -> Vec<Found> {
    let isolation = match reader {
        Reader::Committed => "read_committed",
        Reader::Uncommitted => "read_uncommitted",
    };
    let client: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", kafka.bootstrap())
        .set("group.id", "reader")
        .set("isolation.level", isolation)
        .set("enable.partition.eof", "true")
        .create()
        .unwrap();
    let metadata = client.fetch_metadata(Some(topic), DEADLINE).unwrap();
    let mut list = TopicPartitionList::new();
    let mut open = BTreeSet::new();
    for partition in metadata.topics()[0].partitions() {
        list.add_partition_offset(topic, partition.id(), Offset::Beginning)
            .unwrap();
        open.insert(partition.id());
    }
    client.assign(&list).unwrap();
    let mut found = Vec::new();
    let end = Instant::now() + DEADLINE;
    while !open.is_empty() {
        assert!(Instant::now() < end, "{topic} has no end");
        match client.poll(Duration::from_millis(100)) {
            None => {}
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                open.remove(&partition);
            }
            Some(Err(error)) => panic!("{topic}: {error}"),
            Some(Ok(message)) => {
                let headers = message.headers().map(|headers| {
                    let headers = headers.iter();
                    let pair = |header: rdkafka::message::Header<'_, &[u8]>| {
                        (header.key.to_owned(), header.value.map(<[u8]>::to_vec))
                    };
                    headers.map(pair).collect()
                });
                let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
                found.push(Found {
                    partition: message.partition(),
                    key: message.key().map(text),
                    value: message.payload().map(<[u8]>::to_vec),
                    timestamp_ms: message.timestamp().to_millis(),
                    headers: headers.unwrap_or_default(),
                });
            }
        }
    }
    found
}

/// The keys that a reader finds.
pub(crate) fn keys(kafka: &Kafka, topic: &str, reader: Reader) -> Vec<String> {
    let found = read(kafka, topic, reader).into_iter();
    found.map(|found| found.key.unwrap_or_default()).collect()
}

/// Two topics of a test's own, to read and to write.
pub(crate) fn pair(kafka: &SharedBroker, idea: &str, partitions: i32) -> (String, String) {
    let from = admin::topic(kafka, idea, partitions);
    let to = admin::topic(kafka, &format!("{idea}-out"), partitions);
    (from, to)
}

/// A committed reader finds each key once, and those of one partition that was read in the order of
/// their numbers.
pub(crate) fn assert_once(kafka: &Kafka, topic: &str, keys: &[String], partitions: usize) {
    let found = read(kafka, topic, Reader::Committed);
    let mut times: BTreeMap<_, usize> = keys.iter().map(|key| (key.clone(), 0)).collect();
    let mut newest = BTreeMap::new();
    for one in &found {
        let key = one.key.clone().unwrap();
        *times.get_mut(&key).expect("a key that was sent") += 1;
        let number: usize = key.trim_start_matches("key-").parse().unwrap();
        let before = newest.insert((one.partition, number % partitions), number);
        assert!(before < Some(number), "{key} behind {before:?}");
    }
    let count = |wanted: fn(usize) -> bool| {
        let keys = times.iter().filter(|(_, times)| wanted(**times));
        keys.map(|(key, times)| format!("{key}: {times}"))
            .collect::<Vec<_>>()
    };
    let (missing, twice) = (count(|times| times == 0), count(|times| times > 1));
    assert!(
        missing.is_empty() && twice.is_empty(),
        "of {} keys {} lost, first {:?}, {} repeated, first {:?}",
        keys.len(),
        missing.len(),
        missing.first(),
        twice.len(),
        twice.first()
    );
}
