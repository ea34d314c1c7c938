//! Where a group begins, and where a clean stop leaves it.

use crate::history::History;
use crate::member::{Member, builder, config, sled};
use crate::{admin, broker, feed};

const OLD: [&str; 5] = ["old-1", "old-2", "old-3", "old-4", "old-5"];

// C008, C009
#[test]
fn a_clean_stop_leaves_no_lag() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (topic, dir) = (
        admin::topic(&kafka, "clean-stop", 3),
        tempfile::tempdir().unwrap(),
    );
    for partition in 0..2 {
        let keys: Vec<_> = (0..100).map(|n| format!("{partition}-{n}")).collect();
        feed::produce(&kafka, &topic, partition, &keys);
    }
    feed::produce(&kafka, &topic, 2, &["single"]);
    let history = History::default();
    let member = || builder(config(&kafka, &topic), &topic);
    let running = Member::start("a", member(), sled(dir.path()), &history);
    running.wait(201);
    running.stop();

    // One in flight would be one of lag: the tool knows nothing of this crate.
    let described = kafka.tool(
        "kafka-consumer-groups.sh",
        &["--describe", "--group", &topic],
    );
    let rows: Vec<Vec<_>> = described
        .lines()
        .filter(|line| line.starts_with(&topic))
        .map(|line| line.split_whitespace().skip(2).take(4).collect())
        .collect();
    assert_eq!(
        rows,
        [
            ["0", "100", "100", "0"],
            ["1", "100", "100", "0"],
            ["2", "1", "1", "0"]
        ],
        "partition, committed, end, lag in:\n{described}"
    );

    feed::produce(&kafka, &topic, 2, &["another"]);
    let running = Member::start("b", member(), sled(dir.path()), &history);
    running.wait(202);
    let counts = running.stop().counts;
    assert_eq!((counts.new, counts.redelivery, counts.in_doubt), (1, 0, 0));
}

// C027
#[test]
fn a_new_group_begins_at_the_oldest_record_unless_it_asks_for_the_latest() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic(&kafka, "first-start", 1);
    feed::produce(&kafka, &topic, 0, &OLD);
    let dir = tempfile::tempdir().unwrap();
    let history = History::default();
    let early = builder(config(&kafka, &format!("{topic}-early")), &topic);
    let running = Member::start("early", early, sled(&dir.path().join("early")), &history);
    running.wait(5);
    running.stop();
    assert_eq!(history.keys(), OLD);

    let history = History::default();
    let mut latest = config(&kafka, &format!("{topic}-late"));
    latest.set("auto.offset.reset", "latest");
    let late = builder(latest, &topic);
    let running = Member::start("late", late, sled(&dir.path().join("late")), &history);
    // What comes before the group has found its place is passed over, so one record more until
    // it has.
    let mut sent = 0;
    broker::wait_for("a record that came after the start", || {
        sent += 1;
        feed::produce(&kafka, &topic, 0, &[format!("new-{sent}")]);
        history.len() > 0
    });
    running.stop();
    let keys = history.keys();
    assert!(keys.iter().all(|key| key.starts_with("new-")), "{keys:?}");
}
