//! What a record is, and what of it is kept.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use rdkafka::producer::Producer as _;

use crate::broker::{self, DEADLINE};
use crate::service::Bench;
use crate::written::{self, Line, Sent};
use crate::{admin, feed};

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

/// Copies what is there, and gives it.
fn copied(bench: &Bench<'_>, args: &[&str], count: usize) -> Vec<Line> {
    let mut service = bench.start_with("a", args);
    bench.wait_caught_up(&mut service);
    service.stop();
    written::all(bench.kafka, &bench.to, count)
}

#[test]
fn null_and_empty_stay_apart_and_headers_and_timestamps_stay_as_they_are() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "kinds", 1);
    let to = admin::topic(&kafka, "kinds-once", 1);
    let bench = Bench::new(&kafka, from, to);
    let began = now_ms() - 60_000;
    let record = |number: i64, key, value, headers| Sent {
        timestamp_ms: Some(began + number),
        key,
        value,
        headers,
        ..Sent::default()
    };
    let sent = [
        record(
            0,
            Some(&b"k"[..]),
            Some(&b"v"[..]),
            &[("event-id", Some("1"))][..],
        ),
        // A tombstone, and no more than that.
        record(1, Some(b"k"), None, &[("event-id", Some("2"))]),
        record(2, Some(b"k"), Some(b""), &[("event-id", Some("3"))]),
        record(3, None, Some(b"v"), &[("event-id", Some("4"))]),
        record(4, Some(b""), Some(b"v"), &[("event-id", Some("5"))]),
        // An empty id is an id.
        record(5, Some(b"k"), Some(b"v"), &[("event-id", Some(""))]),
        record(
            6,
            Some(b"k"),
            Some(b"v"),
            &[
                ("b", None),
                ("a", Some("1")),
                ("event-id", Some("6")),
                ("a", Some("")),
                ("a", Some("2")),
            ],
        ),
        // Copies of the tombstone and of the empty value.
        record(7, Some(b"k"), None, &[("event-id", Some("2"))]),
        record(8, Some(b"k"), Some(b""), &[("event-id", Some("3"))]),
    ];
    written::send_all(&kafka, &bench.from, &sent);
    let lines = copied(&bench, &[], 7);
    let expected = [
        ("event-id:1", "k", "v"),
        ("event-id:2", "k", "null"),
        ("event-id:3", "k", ""),
        ("event-id:4", "null", "v"),
        ("event-id:5", "", "v"),
        ("event-id:", "k", "v"),
        ("b:null,a:1,event-id:6,a:,a:2", "k", "v"),
    ];
    for (number, (line, (headers, key, value))) in lines.iter().zip(expected).enumerate() {
        assert_eq!(
            (&*line.headers, &*line.key, &*line.value),
            (headers, key, value)
        );
        assert_eq!(
            line.timestamp,
            format!("CreateTime:{}", began + i64::try_from(number).unwrap())
        );
    }
}

#[test]
fn of_transactions_that_are_read_only_the_committed_ones_are_written() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "transacted", 1);
    let to = admin::topic(&kafka, "transacted-once", 1);
    let bench = Bench::new(&kafka, from, to);
    let producer = feed::producer(kafka.bootstrap(), &[("transactional.id", &bench.from)]);
    producer.init_transactions(DEADLINE).unwrap();
    for (value, commit) in [("first", true), ("aborted", false), ("again", true)] {
        producer.begin_transaction().unwrap();
        // The aborted one must not make the one behind it a copy.
        for id in if commit {
            [value, "both"]
        } else {
            ["again", "lost"]
        } {
            let headers = [("event-id", Some(id))];
            let sent = Sent {
                key: Some(b"k"),
                value: Some(if id == "both" {
                    b"both"
                } else {
                    value.as_bytes()
                }),
                headers: &headers,
                ..Sent::default()
            };
            written::send(&producer, &bench.from, &sent);
        }
        producer.flush(DEADLINE).unwrap();
        if commit {
            producer.commit_transaction(DEADLINE).unwrap();
        } else {
            producer.abort_transaction(DEADLINE).unwrap();
        }
    }
    // The group's position cannot pass the last marker: something behind it can be waited for.
    let last = Sent {
        key: Some(b"k"),
        value: Some(b"last"),
        headers: &[("event-id", Some("last"))],
        ..Sent::default()
    };
    broker::wait_for("the last marker", || kafka.end_offsets(&bench.from) == [9]);
    written::send_all(&kafka, &bench.from, &[last]);
    let values: Vec<_> = copied(&bench, &[], 4)
        .into_iter()
        .map(|line| line.value)
        .collect();
    assert_eq!(values, ["first", "both", "again", "last"]);
}

/// Sends 40 record keys with four records each, from three partitions.
fn spread(bench: &Bench<'_>) {
    let producer = feed::producer(bench.kafka.bootstrap(), &[]);
    for round in 0..4 {
        for key in 0..40 {
            let (id, value) = (format!("{key}-{round}"), format!("{key} {round}"));
            let sent = Sent {
                partition: key % 3,
                key: Some(&format!("k-{key}").into_bytes()),
                value: Some(value.as_bytes()),
                headers: &[("event-id", Some(&id))],
                ..Sent::default()
            };
            written::send(&producer, &bench.from, &sent);
        }
        producer.flush(DEADLINE).unwrap();
    }
}

/// The records of one key are in one partition and in their order; gives each key's partition.
fn assert_in_order(lines: &[Line]) -> HashMap<String, i32> {
    let mut last: HashMap<String, (String, i32)> = HashMap::new();
    for line in lines {
        if let Some((before, partition)) = last.get(&line.key) {
            assert!(*before < line.value, "{before} before {line:?}");
            assert_eq!(*partition, line.partition);
        }
        last.insert(line.key.clone(), (line.value.clone(), line.partition));
    }
    last.into_iter()
        .map(|(key, (_, partition))| (key, partition))
        .collect()
}

#[test]
fn topics_of_different_sizes_keep_the_order_of_each_record_key() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    for (idea, partitions) in [("fewer", 2), ("more", 5)] {
        let from = admin::topic(&kafka, idea, 3);
        let to = admin::topic(&kafka, &format!("{idea}-once"), partitions);
        let bench = Bench::new(&kafka, from, to);
        spread(&bench);
        let found = assert_in_order(&copied(&bench, &[], 160));
        assert_eq!(found.len(), 40);
        assert!(
            (0..partitions).all(|one| found.values().any(|it| *it == one)),
            "{found:?}"
        );
    }
}

#[test]
fn where_the_partition_is_to_be_the_same_it_is() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "same", 3);
    let to = admin::topic(&kafka, "same-once", 4);
    let bench = Bench::new(&kafka, from, to);
    spread(&bench);
    let found = assert_in_order(&copied(&bench, &["--partition", "same"], 160));
    for (key, partition) in found {
        let number: i32 = key.strip_prefix("k-").unwrap().parse().unwrap();
        assert_eq!(partition, number % 3, "{key}");
    }
}

#[test]
fn a_copy_in_another_partition_is_dropped_unless_each_partition_counts_by_itself() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    for (scope, count) in [("topic", 1), ("partition", 2)] {
        let from = admin::topic(&kafka, &format!("scope-{scope}"), 2);
        let to = admin::topic(&kafka, &format!("scope-{scope}-once"), 1);
        let bench = Bench::new(&kafka, from, to);
        let sent = [0, 1].map(|partition| Sent {
            partition,
            value: Some(b"v"),
            headers: &[("event-id", Some("1"))],
            ..Sent::default()
        });
        written::send_all(&kafka, &bench.from, &sent);
        copied(&bench, &["--scope", scope], count);
    }
}
