//! Members come and go while records flow. Each has a store of its own.

use std::time::Duration;

use idempotent_consumer::ClientConfig;

use crate::feed::Feed;
use crate::history::History;
use crate::member::{Member, builder, config, sled};
use crate::{admin, broker};

const PARTITIONS: usize = 4;
/// More than are sent before the members have come and gone.
const KEYS_MAX: usize = 200_000;

/// librdkafka's batch call lost a record here: one that came right after a member had come to the
/// end of a partition that it keeps through a rebalance.
///
/// C030: one, two, three members, then two, then one. `setting` chooses how the group is divided.
fn members_come_and_go(idea: &str, setting: impl Fn(ClientConfig) -> ClientConfig) {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic(&kafka, idea, i32::try_from(PARTITIONS).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let history = History::default();
    let start = |name| {
        let builder = builder(setting(config(&kafka, &topic)), &topic);
        Member::start(name, builder, sled(&dir.path().join(name)), &history)
    };
    let works = |name| {
        let before = history.count_of(name);
        broker::wait_for(&format!("work of {name}"), || {
            history.count_of(name) > before + 20
        });
    };
    let first = start("first");
    let feed = Feed::start(
        &kafka,
        &topic,
        PARTITIONS,
        KEYS_MAX,
        Duration::from_millis(40),
    );
    works("first");
    let second = start("second");
    works("second");
    let third = start("third");
    works("third");
    let mut restored = first.stop().counts.restored;
    works("second");
    works("third");
    restored += second.stop().counts.restored;
    let keys = feed.stop();
    broker::wait_caught_up(&kafka, &topic, &topic);
    restored += third.stop().counts.restored;
    history.assert_each_once(&keys);
    assert!(restored > 0, "no member learned what another had done");
}

fn range(mut config: ClientConfig) -> ClientConfig {
    config.set("partition.assignment.strategy", "range");
    config
}

fn cooperative(mut config: ClientConfig) -> ClientConfig {
    config.set("partition.assignment.strategy", "cooperative-sticky");
    config
}

fn consumer_protocol(mut config: ClientConfig) -> ClientConfig {
    config.set("group.protocol", "consumer");
    // The broker's to choose in this protocol.
    config.remove("session.timeout.ms");
    config.remove("heartbeat.interval.ms");
    config
}

// C031
#[test]
fn members_that_come_and_go_in_order_lose_and_repeat_nothing_on_range() {
    members_come_and_go("range", range);
}

#[test]
fn members_that_come_and_go_in_order_lose_and_repeat_nothing_on_cooperative_sticky() {
    members_come_and_go("cooperative", cooperative);
}

#[test]
fn members_that_come_and_go_in_order_lose_and_repeat_nothing_on_the_consumer_protocol() {
    members_come_and_go("consumer-protocol", consumer_protocol);
}
