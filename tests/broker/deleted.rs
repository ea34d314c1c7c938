//! Records that are gone before they were handled.

use crate::history::History;
use crate::member::{self, Member, builder, config, sled};
use crate::{admin, broker, feed};

/// Five records are handled, five more come, and all below offset 8 is deleted.
fn handles_what_is_left(idea: &str, reset: &str) {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (topic, dir) = (admin::topic(&kafka, idea, 1), tempfile::tempdir().unwrap());
    let keys: Vec<_> = (0..10).map(|number| format!("key-{number}")).collect();
    feed::produce(&kafka, &topic, 0, &keys[..5]);
    let history = History::default();
    let start = |reset: &str| {
        let mut config = config(&kafka, &topic);
        config.set("auto.offset.reset", reset);
        Member::start(
            "a",
            builder(config, &topic),
            sled(&dir.path().join("seen")),
            &history,
        )
    };
    let running = start("earliest");
    running.wait(5);
    running.stop();

    feed::produce(&kafka, &topic, 0, &keys[5..]);
    let list = dir.path().join("delete.json");
    let json = format!(
        r#"{{"partitions": [{{"topic": "{topic}", "partition": 0, "offset": 8}}], "version": 1}}"#
    );
    std::fs::write(&list, json).unwrap();
    let list = list.to_str().unwrap();
    kafka.tool("kafka-delete-records.sh", &["--offset-json-file", list]);

    let running = start(reset);
    running.wait(7);
    broker::wait_caught_up(&kafka, &topic, &topic);
    running.stop();
    let expected: Vec<_> = keys[..5].iter().chain(&keys[8..]).cloned().collect();
    history.assert_each_once(&expected);
    // C052: as many as may be missing, not as many as are.
    let said = [
        "WARN",
        topic.as_str(),
        "deleted before they were handled: up to 3",
    ];
    assert!(member::was_logged(&said), "no report of what was deleted");
}

#[test]
fn records_deleted_before_they_were_handled_are_reported_and_the_rest_is_handled() {
    handles_what_is_left("deleted", "earliest");
}

#[test]
fn a_group_that_begins_at_the_latest_record_handles_what_a_deletion_left_all_the_same() {
    handles_what_is_left("deleted-latest", "latest");
}
