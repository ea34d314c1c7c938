//! A record that is larger than what is asked for at once.

use rdkafka::producer::Producer as _;

use crate::broker::DEADLINE;
use crate::history::History;
use crate::member::{Member, builder, config, sled};
use crate::{admin, broker, feed};

const LARGE_BYTES: usize = 2 << 20;

// C017
#[test]
fn a_record_above_every_fetch_limit_comes_in_its_turn() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic_with(&kafka, "large", &[("max.message.bytes", "4194304")]);
    let producer = feed::producer(kafka.bootstrap(), &[("message.max.bytes", "4194304")]);
    let keys = ["a", "b", "c", "large", "d", "e", "f"];
    for key in keys {
        let bytes = if key == "large" { LARGE_BYTES } else { 10 };
        feed::send(&producer, &topic, 0, key, &vec![b'x'; bytes]);
    }
    producer.flush(DEADLINE).unwrap();

    let dir = tempfile::tempdir().unwrap();
    let history = History::default();
    let mut config = config(&kafka, &topic);
    config
        .set("fetch.message.max.bytes", "1")
        .set("fetch.max.bytes", "1024")
        .set("message.max.bytes", "1024")
        .set("queued.max.messages.kbytes", "1");
    let running = Member::start("a", builder(config, &topic), sled(dir.path()), &history);
    running.wait(keys.len());
    broker::wait_caught_up(&kafka, &topic, &topic);
    running.stop();
    assert_eq!(history.keys(), keys);
}
