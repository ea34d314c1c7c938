//! The broker goes away and comes back.

use std::time::Duration;

use crate::feed::Feed;
use crate::history::History;
use crate::member::{Member, builder, config, sled};
use crate::{admin, broker};

const KEYS: usize = 5_000;

#[test]
fn a_broker_that_restarts_or_crashes_in_the_middle_costs_time_alone() {
    let Some(kafka) = broker::alone() else { return };
    let (topic, dir) = (
        admin::topic(&kafka, "restarted", 2),
        tempfile::tempdir().unwrap(),
    );
    let history = History::default();
    let mut config = config(&kafka, &topic);
    config.set("reconnect.backoff.max.ms", "300");
    let running = Member::start("a", builder(config, &topic), sled(dir.path()), &history);
    let feed = Feed::start(&kafka, &topic, 2, KEYS, Duration::from_millis(30));
    running.wait(KEYS / 10);
    kafka.restart();
    running.wait(KEYS / 2);
    kafka.kill();
    kafka.resume();
    let keys = feed.wait();
    running.wait(KEYS);
    broker::wait_caught_up(&kafka, &topic, &topic);
    let counts = running.stop().counts;
    history.assert_each_once(&keys);
    assert_eq!(counts.new, KEYS as u64);
}
