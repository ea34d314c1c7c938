//! Records of transactions: only committed ones count, and their markers take offsets.

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::producer::{BaseProducer, Producer as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::broker::{DEADLINE, SharedBroker};
use crate::history::History;
use crate::member::{Member, builder, config, sled};
use crate::{admin, broker, feed};

/// Writes keys in one transaction; each value names its transaction.
fn transaction(producer: &BaseProducer, topic: &str, name: &str, keys: &[&str], commit: bool) {
    producer.begin_transaction().unwrap();
    for key in keys {
        feed::send(producer, topic, 0, key, name.as_bytes());
    }
    producer.flush(DEADLINE).unwrap();
    if commit {
        producer.commit_transaction(DEADLINE).unwrap();
    } else {
        producer.abort_transaction(DEADLINE).unwrap();
    }
}

fn producer(kafka: &SharedBroker, topic: &str) -> BaseProducer {
    let producer = feed::producer(kafka.bootstrap(), &[("transactional.id", topic)]);
    producer.init_transactions(DEADLINE).unwrap();
    producer
}

/// The last marker is written when its transaction has already been said to have ended.
fn wait_for_end(kafka: &SharedBroker, topic: &str, end: i64) {
    broker::wait_for("the last marker", || kafka.end_offsets(topic) == [end]);
}

// C090
#[test]
fn a_key_of_an_aborted_transaction_is_handled_when_it_comes_in_a_committed_one() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (topic, dir) = (
        admin::topic(&kafka, "aborted", 1),
        tempfile::tempdir().unwrap(),
    );
    let producer = producer(&kafka, &topic);
    transaction(&producer, &topic, "first", &["a", "b"], true);
    transaction(&producer, &topic, "second", &["c"], false);
    transaction(&producer, &topic, "third", &["c", "d"], true);
    wait_for_end(&kafka, &topic, 8);

    let history = History::default();
    let member = || builder(config(&kafka, &topic), &topic);
    let running = Member::start("a", member(), sled(dir.path()), &history);
    running.wait(4);
    running.stop();
    let offsets: Vec<_> = history
        .list()
        .into_iter()
        .map(|e| (e.key, e.offset))
        .collect();
    let expected = [("a", 0), ("b", 1), ("c", 5), ("d", 6)];
    assert_eq!(
        offsets,
        expected.map(|(key, offset)| (key.to_owned(), offset))
    );
    let committed = broker::committed(&kafka, &topic, &topic);
    assert!(matches!(committed[..], [Some(7 | 8)]), "{committed:?}");

    // The markers behind the head are no loss, and nothing comes again.
    transaction(&producer, &topic, "fourth", &["c", "e"], false);
    transaction(&producer, &topic, "third", &["c", "e"], true);
    let running = Member::start("b", member(), sled(dir.path()), &history);
    running.wait(5);
    let counts = running.stop().counts;
    assert_eq!((counts.new, counts.duplicate, counts.redelivery), (1, 1, 0));
    assert_eq!(history.keys(), ["a", "b", "c", "d", "e"]);
}

// C051
#[test]
fn a_marker_at_the_end_of_the_log_does_not_hold_up_a_stop_or_a_restart() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (topic, dir) = (
        admin::topic(&kafka, "marker", 1),
        tempfile::tempdir().unwrap(),
    );
    transaction(
        &producer(&kafka, &topic),
        &topic,
        "only",
        &["a", "b", "c"],
        true,
    );
    wait_for_end(&kafka, &topic, 4);
    let history = History::default();
    let member = || builder(config(&kafka, &topic), &topic);
    for run in 1..=2 {
        let running = Member::start("a", member(), sled(dir.path()), &history);
        running.wait(3);
        running.stop();
        let committed = broker::committed(&kafka, &topic, &topic);
        assert!(
            matches!(committed[..], [Some(3 | 4)]),
            "run {run}: {committed:?}"
        );
    }
    assert_eq!(history.keys(), ["a", "b", "c"]);
}

/// Sets a group without members to a position, as its operator does with `--to-latest`.
fn set_group(kafka: &SharedBroker, group: &str, topic: &str, next: i64) {
    let operator: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", kafka.bootstrap())
        .set("group.id", group)
        .create()
        .unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Offset(next))
        .unwrap();
    operator.commit(&list, CommitMode::Sync).unwrap();
}

// C022
#[test]
fn a_restore_comes_to_its_end_where_the_last_offsets_hold_no_record() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (topic, dir) = (
        admin::topic(&kafka, "restored", 1),
        tempfile::tempdir().unwrap(),
    );
    let producer = producer(&kafka, &topic);
    transaction(&producer, &topic, "first", &["a", "b"], true);
    transaction(&producer, &topic, "second", &["c"], false);
    wait_for_end(&kafka, &topic, 5);
    set_group(&kafka, &topic, &topic, 5);

    let history = History::default();
    let member = builder(config(&kafka, &topic), &topic);
    let running = Member::start("a", member, sled(dir.path()), &history);
    transaction(&producer, &topic, "first", &["a", "d"], true);
    running.wait(1);
    let counts = running.stop().counts;
    assert_eq!((counts.restored, counts.duplicate, counts.new), (2, 1, 1));
    assert_eq!(history.keys(), ["d"]);
}
