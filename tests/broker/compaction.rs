//! Offsets that are missing in the middle.

use idempotent_consumer::key;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::producer::Producer as _;
use rdkafka::{Message as _, Offset, TopicPartitionList};

use crate::broker::{DEADLINE, SharedBroker};
use crate::history::History;
use crate::member::{Member, builder, config, sled};
use crate::{admin, broker, feed};

/// The offsets that a plain consumer sees.
fn offsets(kafka: &SharedBroker, topic: &str) -> Vec<i64> {
    let reader: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", kafka.bootstrap())
        .set("group.id", "unused")
        .set("enable.auto.commit", "false")
        .create()
        .unwrap();
    let mut all = TopicPartitionList::new();
    all.add_partition_offset(topic, 0, Offset::Beginning)
        .unwrap();
    reader.assign(&all).unwrap();
    let last = kafka.end_offsets(topic)[0] - 1;
    let mut seen = vec![];
    while seen.last() != Some(&last) {
        let record = reader.poll(DEADLINE).expect("a record").unwrap();
        seen.push(record.offset());
    }
    seen
}

// C050
#[test]
fn gaps_that_compaction_left_hold_up_nothing() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let compact = [
        ("cleanup.policy", "compact"),
        ("segment.ms", "100"),
        ("min.cleanable.dirty.ratio", "0.01"),
    ];
    let topic = admin::topic_with(&kafka, "compacted", &compact);
    // The record key is what is compacted; the identity is the value.
    let producer = feed::producer(kafka.bootstrap(), &[]);
    for number in 0..100 {
        let (key, value) = (format!("key-{}", number % 5), format!("value-{number}"));
        feed::send(&producer, &topic, 0, &key, value.as_bytes());
    }
    producer.flush(DEADLINE).unwrap();
    // A segment is closed when a record comes that is too young for it, and cleaned when closed.
    let mut left = vec![];
    let mut closing = 0;
    broker::wait_for("compaction", || {
        closing += 1;
        feed::produce(&kafka, &topic, 0, &[format!("closing-{closing}")]);
        left = offsets(&kafka, &topic);
        // One of each key: there is nothing more to remove while they are handled.
        left.iter().filter(|offset| **offset < 100).count() == 5
    });

    let history = History::default();
    let dir = tempfile::tempdir().unwrap();
    let member = || builder(config(&kafka, &topic), &topic).key(key::value());
    let running = Member::start("a", member(), sled(dir.path()), &history);
    running.wait(left.len());
    broker::wait_caught_up(&kafka, &topic, &topic);
    running.stop();
    let handled: Vec<_> = history.list().iter().map(|effect| effect.offset).collect();
    assert_eq!(handled, left);

    feed::produce(&kafka, &topic, 0, &["last"]);
    let running = Member::start("b", member(), sled(dir.path()), &history);
    running.wait(left.len() + 1);
    let counts = running.stop().counts;
    assert_eq!((counts.new, counts.redelivery), (1, 0));
}
