//! Operators set groups back, and groups forget.

use crate::broker::SharedBroker;
use crate::history::History;
use crate::member::{Member, builder, config, sled};
use crate::{admin, broker, feed};

const KEYS: usize = 50;

/// Sets a group back to the start of a topic.
pub(crate) fn reset(kafka: &SharedBroker, group: &str, topic: &str) -> std::process::Output {
    let words = [
        "--group",
        group,
        "--topic",
        topic,
        "--reset-offsets",
        "--to-earliest",
        "--execute",
    ];
    kafka.try_tool("kafka-consumer-groups.sh", &words)
}

// C046, C110
#[test]
fn nothing_that_an_operator_does_to_offsets_repeats_an_effect() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (topic, dir) = (
        admin::topic(&kafka, "rewound", 1),
        tempfile::tempdir().unwrap(),
    );
    let keys: Vec<_> = (0..KEYS).map(|number| format!("key-{number}")).collect();
    feed::produce(&kafka, &topic, 0, &keys);
    let history = History::default();
    let start_from = |reset: &str| {
        let mut config = config(&kafka, &topic);
        config.set("auto.offset.reset", reset);
        Member::start("a", builder(config, &topic), sled(dir.path()), &history)
    };
    let start = || start_from("earliest");
    let running = start();
    running.wait(KEYS);
    broker::wait_caught_up(&kafka, &topic, &topic);

    let refused = reset(&kafka, &topic, &topic);
    let said = [refused.stdout, refused.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(
        said.contains("inactive") || said.contains("Stable"),
        "{said}"
    );
    running.stop();
    assert_eq!(
        broker::committed(&kafka, &topic, &topic),
        [Some(50)],
        "the reset was not refused"
    );

    let rewound = reset(&kafka, &topic, &topic);
    assert!(
        rewound.status.success(),
        "{}",
        String::from_utf8_lossy(&rewound.stderr)
    );
    assert_eq!(broker::committed(&kafka, &topic, &topic), [Some(0)]);
    let running = start();
    broker::wait_caught_up(&kafka, &topic, &topic);
    let counts = running.stop().counts;
    assert_eq!((counts.new, counts.redelivery, counts.in_doubt), (0, 50, 0));

    let words = ["--group", &topic, "--topic", &topic, "--delete-offsets"];
    kafka.tool("kafka-consumer-groups.sh", &words);
    assert_eq!(broker::committed(&kafka, &topic, &topic), [None]);
    feed::produce(&kafka, &topic, 0, &["key-7", "one more"]);
    // The store knows the partition: this is no first start.
    let running = start_from("latest");
    running.wait(KEYS + 1);
    broker::wait_caught_up(&kafka, &topic, &topic);
    let counts = running.stop().counts;
    assert_eq!(
        (counts.new, counts.redelivery, counts.duplicate),
        (1, 50, 1)
    );
    let expected: Vec<_> = keys.into_iter().chain(["one more".to_owned()]).collect();
    history.assert_each_once(&expected);
}
