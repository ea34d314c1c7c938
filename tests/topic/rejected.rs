//! Records that the output does not take, and those that nothing protects.

use std::process::Command;

use crate::service::Bench;
use crate::support::kafka::Kafka;
use crate::written::{self, Sent};
use crate::{admin, broker};

const SMALL_BYTES: &str = "2000";

fn record<'a>(
    key: Option<&'a [u8]>,
    value: &'a [u8],
    headers: &'a [(&'a str, Option<&'a str>)],
) -> Sent<'a> {
    Sent {
        key,
        value: Some(value),
        headers,
        ..Sent::default()
    }
}

fn values(kafka: &Kafka, topic: &str, count: usize) -> Vec<String> {
    let lines = written::all(kafka, topic, count);
    lines.into_iter().map(|line| line.value).collect()
}

#[test]
fn a_record_larger_than_the_output_takes_goes_to_the_dead_letters_and_the_rest_goes_on() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "large", 1);
    let to = admin::topic_with(&kafka, "large-once", &[("max.message.bytes", SMALL_BYTES)]);
    let letters = admin::topic(&kafka, "large-letters", 1);
    let bench = Bench::new(&kafka, from, to);
    let large = vec![b'x'; 2_000];
    // The least that could be refused, and the most that is certain to be taken.
    let (limit, fits) = (vec![b'y'; 1_890], vec![b'z'; 1_800]);
    let ids: Vec<_> = (0..5).map(|id| id.to_string()).collect();
    let headers: Vec<_> = ids.iter().map(|id| [("event-id", Some(&**id))]).collect();
    let sent = [
        record(None, b"before", &headers[0]),
        record(None, &large, &headers[1]),
        record(None, &limit, &headers[2]),
        record(None, &fits, &headers[3]),
        record(None, b"behind", &headers[4]),
    ];
    written::send_all(&kafka, &bench.from, &sent);
    let mut service = bench.start_with("a", &["--dead-letter", &letters]);
    bench.wait_caught_up(&mut service);
    let said = service.stop();
    assert!(said.contains("max.message.bytes is 2000"), "{said}");
    let fits = String::from_utf8(fits).unwrap();
    assert_eq!(values(&kafka, &bench.to, 3), ["before", &fits, "behind"]);
    let set_aside = written::all(&kafka, &letters, 2);
    assert!(set_aside[0].headers.contains("event-id:1"), "{set_aside:?}");
    assert_eq!(set_aside[0].value.len(), large.len());
}

#[test]
fn small_records_are_not_put_together_to_more_than_the_output_takes() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "batched", 1);
    let to = admin::topic_with(
        &kafka,
        "batched-once",
        &[("max.message.bytes", SMALL_BYTES)],
    );
    let bench = Bench::new(&kafka, from, to);
    let value = vec![b'x'; 300];
    let ids: Vec<_> = (0..300).map(|id| id.to_string()).collect();
    let headers: Vec<_> = ids.iter().map(|id| [("event-id", Some(&**id))]).collect();
    let sent: Vec<_> = headers
        .iter()
        .map(|one| record(None, &value, one))
        .collect();
    written::send_all(&kafka, &bench.from, &sent);
    let mut service = bench.start("a");
    bench.wait_caught_up(&mut service);
    service.stop();
    written::all(&kafka, &bench.to, 300);
}

fn set_limit(kafka: &Kafka, topic: &str, bytes: &str) {
    let setting = format!("max.message.bytes={bytes}");
    let (alter, name) = (
        ["--alter", "--entity-type", "topics"],
        ["--entity-name", topic],
    );
    let set = ["--add-config", &setting];
    kafka.tool("kafka-configs.sh", &[&alter[..], &name, &set].concat());
}

#[test]
fn without_dead_letters_it_stops_at_such_a_record_and_goes_on_there_once_it_can_be_written() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "stopped", 1);
    let to = admin::topic_with(
        &kafka,
        "stopped-once",
        &[("max.message.bytes", SMALL_BYTES)],
    );
    let bench = Bench::new(&kafka, from, to);
    let large = "x".repeat(3_000);
    let sent = [
        record(None, b"before", &[("event-id", Some("1"))]),
        record(None, large.as_bytes(), &[("event-id", Some("2"))]),
        record(None, b"behind", &[("event-id", Some("3"))]),
    ];
    written::send_all(&kafka, &bench.from, &sent);
    for _ in 0..2 {
        let mut service = bench.start("a");
        assert_eq!(service.end().code(), Some(1));
        let said = service.said();
        for words in [
            "[0]@1 cannot be written",
            "--dead-letter",
            "max.message.bytes is 2000",
            "not marked",
        ] {
            assert!(said.contains(words), "no {words:?} in {said}");
        }
    }
    set_limit(&kafka, &bench.to, "100000");
    let mut service = bench.start("a");
    bench.wait_caught_up(&mut service);
    service.stop();
    assert_eq!(values(&kafka, &bench.to, 3), ["before", &large, "behind"]);
}

#[test]
fn a_compacted_output_gets_no_record_without_a_key() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "keyless", 1);
    let to = admin::topic_with(&kafka, "keyless-once", &[("cleanup.policy", "compact")]);
    let letters = admin::topic(&kafka, "keyless-letters", 1);
    let bench = Bench::new(&kafka, from, to);
    let tombstone = Sent {
        value: None,
        ..record(Some(b"a"), b"", &[("event-id", Some("3"))])
    };
    let sent = [
        record(None, b"keyless", &[("event-id", Some("1"))]),
        record(Some(b"b"), b"keyed", &[("event-id", Some("2"))]),
        tombstone,
    ];
    written::send_all(&kafka, &bench.from, &sent);
    let mut service = bench.start_with("a", &["--dead-letter", &letters]);
    bench.wait_caught_up(&mut service);
    let said = service.stop();
    assert!(said.contains("compacted"), "{said}");
    assert_eq!(values(&kafka, &bench.to, 2), ["keyed", "null"]);
    assert_eq!(values(&kafka, &letters, 1), ["keyless"]);
}

/// What each policy makes of a record without an id, and of an id that comes with two values.
#[test]
fn what_is_not_protected_or_not_a_copy_stops_it_unless_it_was_said_otherwise() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "policies", 1);
    let to = admin::topic(&kafka, "policies-once", 1);
    let bench = Bench::new(&kafka, from, to);
    let sent = [
        record(None, b"first", &[("event-id", Some("1"))]),
        record(None, b"other", &[("event-id", Some("1"))]),
        record(None, b"no id", &[]),
        record(None, b"no id", &[]),
        record(None, b"last", &[("event-id", Some("2"))]),
    ];
    written::send_all(&kafka, &bench.from, &sent);
    let ends = |args: &[&str], words: &str| {
        let mut service = bench.start_with("a", args);
        assert_eq!(service.end().code(), Some(1));
        let said = service.said();
        assert!(said.contains(words), "no {words:?} in {said}");
    };
    ends(&[], "another value");
    ends(&["--mismatch", "drop"], "has no key");
    let both = ["--mismatch", "drop", "--missing-key", "pass"];
    let mut service = bench.start_with("a", &both);
    bench.wait_caught_up(&mut service);
    service.stop();
    assert_eq!(
        values(&kafka, &bench.to, 4),
        ["first", "no id", "no id", "last"]
    );
}

/// A store is one recipe's.
#[test]
fn another_key_recipe_under_the_same_store_is_refused() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "recipes", 1);
    let to = admin::topic(&kafka, "recipes-once", 1);
    let bench = Bench::new(&kafka, from, to);
    let mut service = bench.start("a");
    service.wait_said("partition assigned");
    service.stop();
    // The other binary of the same store says what it belongs to.
    let shown = Command::new(env!("CARGO_BIN_EXE_dedup"))
        .args(["store", "show"])
        .arg(bench.path("a"))
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("header:event-id"), "{shown}");
    let file = bench.path("settings");
    std::fs::write(&file, "key=header:other\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_dedup"));
    let store = bench.path("a");
    command
        .args(["topic", "--from", &bench.from, "--to", &bench.to])
        .args(["--group", &bench.to, "--brokers", kafka.bootstrap()])
        .arg("--config")
        .arg(&file)
        .arg("--store")
        .arg(&store);
    let (code, said) = crate::service::refusal(command, file.parent().unwrap());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("header:event-id"), "{said}");
}
