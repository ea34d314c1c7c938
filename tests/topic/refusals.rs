//! What is refused before anything is read, written or made.

use crate::service::{self, Bench};
use crate::{admin, broker};

#[test]
fn a_topic_that_is_missing_is_named_with_the_way_to_make_it_and_is_not_made() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let there = admin::topic(&kafka, "there", 3);
    let missing = admin::name("missing");
    for (from, to, words) in [
        (&there, &missing, "--create --topic"),
        (&missing, &there, "name the topic to read"),
    ] {
        let bench = Bench::new(&kafka, from.clone(), to.clone());
        let (code, said) = service::refusal(bench.command("a"), &bench.path(""));
        assert_eq!(code, Some(1), "{said}");
        for words in [words, &missing, "does not exist"] {
            assert!(said.contains(words), "no {words:?} in {said}");
        }
        assert!(!bench.path("a").exists(), "a store was made");
    }
    let topics = kafka.tool("kafka-topics.sh", &["--list"]);
    assert!(!topics.contains(&missing), "{topics}");
}

#[test]
fn fewer_partitions_than_the_input_has_are_refused_where_they_are_to_be_the_same() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "three", 3);
    let to = admin::topic(&kafka, "two", 2);
    let bench = Bench::new(&kafka, from, to);
    let mut command = bench.command("a");
    command.args(["--partition", "same"]);
    let (code, said) = service::refusal(command, &bench.path(""));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("it has 2 partitions"), "{said}");
}

#[test]
fn settings_that_would_break_the_promise_are_refused_with_the_reason() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "settings", 1);
    let to = admin::topic(&kafka, "settings-once", 1);
    let bench = Bench::new(&kafka, from, to);
    for setting in [
        "enable.auto.commit=true",
        "isolation.level=read_uncommitted",
        "acks=1",
        "transactional.id=mine",
        "max.in.flight=10",
    ] {
        let mut command = bench.command("a");
        command.args(["-X", setting]);
        let (code, said) = service::refusal(command, &bench.path(""));
        let name = setting.split('=').next().unwrap();
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(name), "{said}");
    }
}

#[test]
fn a_second_instance_needs_a_store_of_its_own() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "locked", 1);
    let to = admin::topic(&kafka, "locked-once", 1);
    let bench = Bench::new(&kafka, from, to);
    let mut first = bench.start("a");
    first.wait_said("partition assigned");
    let (code, said) = service::refusal(bench.command("a"), &bench.path(""));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("in use by process"), "{said}");
    first.stop();
}

#[test]
fn of_two_with_one_instance_id_the_older_ends_and_is_not_to_be_started_again() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "static", 1);
    let to = admin::topic(&kafka, "static-once", 1);
    let bench = Bench::new(&kafka, from, to);
    let named = ["-X", "group.instance.id=one"];
    let mut older = bench.start_with("a", &named);
    older.wait_said("partition assigned");
    let mut newer = bench.start_with("b", &named);
    assert_eq!(older.end().code(), Some(2));
    let said = older.said();
    assert!(
        said.contains("group.instance.id: give each its own"),
        "{said}"
    );
    newer.wait_said("partition assigned");
    newer.stop();
}
