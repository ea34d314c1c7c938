//! The batch call under rebalances: what it hands out is all there is, in order.

use std::collections::HashMap;

use rdkafka::producer::Producer as _;

use crate::broker::DEADLINE;
use crate::history::History;
use crate::member::{Member, builder, config, sled};
use crate::{admin, broker, feed};

const PARTITIONS: i32 = 4;
const RECORDS: usize = 200_000;

fn two_hundred_thousand(idea: &str, strategy: &str) {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic(&kafka, idea, PARTITIONS);
    let keys: Vec<_> = (0..RECORDS).map(|number| format!("{number:08}")).collect();
    let producer = feed::producer(kafka.bootstrap(), &[]);
    for (partition, key) in (0..PARTITIONS).cycle().zip(&keys) {
        feed::send(&producer, &topic, partition, key, b"");
    }
    producer.flush(DEADLINE).unwrap();

    let dir = tempfile::tempdir().unwrap();
    let history = History::default();
    let start = |name| {
        let mut config = config(&kafka, &topic);
        config.set("partition.assignment.strategy", strategy);
        Member::start(
            name,
            builder(config, &topic),
            sled(&dir.path().join(name)),
            &history,
        )
    };
    let first = start("first");
    first.wait(RECORDS / 20);
    let second = start("second");
    second.wait(RECORDS / 4);
    let third = start("third");
    third.wait(RECORDS / 2);
    first.stop();
    third.stop();
    second.wait(RECORDS);
    second.stop();

    history.assert_each_once(&keys);
    let mut last = HashMap::new();
    for effect in history.list() {
        let before = last.insert(effect.partition, effect.offset).unwrap_or(-1);
        assert_eq!(effect.offset, before + 1, "{effect:?}");
    }
}

#[test]
fn two_hundred_thousand_records_come_without_a_gap_under_eager_rebalances() {
    two_hundred_thousand("batches-range", "range");
}

// C015
#[test]
fn two_hundred_thousand_records_come_without_a_gap_under_cooperative_rebalances() {
    two_hundred_thousand("batches-cooperative", "cooperative-sticky");
}
