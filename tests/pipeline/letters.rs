//! A dead-letter topic, what lies in it, and what a store says of dead letters.

use std::time::{Duration, Instant};

use idempotent_consumer::store::{Place, Store};
use idempotent_consumer::testkit::EmbeddedBroker;
use idempotent_consumer::{Builder, ClientConfig, DeadLetter, Ordering};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{Headers as _, OwnedMessage};
use rdkafka::{Message as _, Offset, TopicPartitionList};

use crate::support::{DEADLINE, TOPIC, broker, builder};

pub(crate) const LETTERS: &str = "orders.DLT";
pub(crate) const ORDERINGS: [Ordering; 3] =
    [Ordering::Partition, Ordering::Key, Ordering::Unordered];

/// A broker with the usual topic and one for letters.
pub(crate) fn broker_with_letters(partitions: i32) -> EmbeddedBroker {
    let broker = broker(partitions);
    broker.create_topic(LETTERS, 1).unwrap();
    broker
}

/// A consumer that writes letters and commits offsets as soon as it may.
pub(crate) fn burying(broker: &EmbeddedBroker) -> Builder {
    builder(broker)
        .dead_letter(DeadLetter::to_topic(LETTERS))
        .offset_interval(Duration::ZERO)
}

/// Letters whose producer has such a setting.
pub(crate) fn letters_with(setting: &str, value: &str) -> DeadLetter {
    let mut config = ClientConfig::new();
    config.set(setting, value);
    DeadLetter::to_topic(LETTERS).config(config)
}

fn reader(broker: &EmbeddedBroker) -> BaseConsumer {
    ClientConfig::new()
        .set("bootstrap.servers", broker.bootstrap_servers())
        .set("group.id", "readers-of-letters")
        .set("enable.auto.commit", "false")
        .create()
        .unwrap()
}

/// How many letters have been written.
pub(crate) fn written(broker: &EmbeddedBroker) -> i64 {
    let (_, end) = reader(broker)
        .fetch_watermarks(LETTERS, 0, DEADLINE)
        .unwrap();
    end
}

/// All letters, in the order of their first offsets.
pub(crate) fn letters(broker: &EmbeddedBroker) -> Vec<OwnedMessage> {
    let (reader, count) = (reader(broker), usize::try_from(written(broker)).unwrap());
    let mut all = TopicPartitionList::new();
    all.add_partition_offset(LETTERS, 0, Offset::Beginning)
        .unwrap();
    reader.assign(&all).unwrap();
    let end = Instant::now() + DEADLINE;
    let mut found = Vec::new();
    while found.len() < count {
        assert!(Instant::now() < end, "{} of {count} letters", found.len());
        if let Some(letter) = reader.poll(Duration::from_millis(100)) {
            found.push(letter.unwrap().detach());
        }
    }
    found.sort_by_key(|letter| header(letter, "kafka_dlt-original-offset").map(<[u8]>::to_vec));
    found
}

/// The value of a letter's header.
pub(crate) fn header<'a>(letter: &'a OwnedMessage, name: &str) -> Option<&'a [u8]> {
    let mut headers = letter.headers()?.iter();
    headers.find(|header| header.key == name)?.value
}

/// A letter as text: `key: reason, attempts`.
pub(crate) fn told(letter: &OwnedMessage) -> String {
    let key = letter.key().map_or("-".into(), String::from_utf8_lossy);
    let reason = String::from_utf8_lossy(header(letter, "kafka_dlt-exception-fqcn").unwrap());
    let reason = reason.rsplit("::").next().unwrap();
    let attempts = header(letter, "kafka_deliveryAttempt").unwrap();
    let attempts = i32::from_be_bytes(attempts.try_into().unwrap());
    format!("{key}: {reason}, {attempts}")
}

/// What a store has marked in a partition, in the order of offsets, and whether as a dead letter.
pub(crate) fn marks(store: &impl Store, partition: i32) -> Vec<(i64, bool)> {
    let heads = store.heads();
    let id = heads
        .iter()
        .position(|(name, _)| (name.topic(), name.partition()) == (TOPIC, partition));
    let Some(id) = id else { return Vec::new() };
    let id = idempotent_consumer::store::PartitionId(u32::try_from(id).unwrap());
    let (mut place, mut marks) = (Place::default(), Vec::new());
    while let Some((next, unit)) = store.unit_behind(id, place).unwrap() {
        let entries = unit.entries.iter();
        marks.extend(entries.map(|entry| (entry.offset, entry.dead_lettered)));
        place = next;
    }
    marks.sort_unstable();
    marks
}
