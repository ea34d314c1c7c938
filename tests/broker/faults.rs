//! A bad network between the consumer and the broker.

use std::time::Duration;

use idempotent_consumer::testkit::{ApiKey, FaultProxy};

use crate::broker::SharedBroker;
use crate::feed::Feed;
use crate::history::History;
use crate::member::{Member, builder, config, sled};
use crate::{admin, broker};

const KEYS: usize = 3_000;
const PARTITIONS: usize = 2;

/// Lets a member read through a proxy while records flow straight to the broker, has `harm` done
/// to it, and looks at the history.
fn read_through(idea: &str, harm: impl FnOnce(&FaultProxy, &dyn Fn(usize))) {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let Some((_turn, proxy)) = broker::proxy(&kafka) else {
        return;
    };
    let topic = admin::topic(&kafka, idea, i32::try_from(PARTITIONS).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let history = History::default();
    let running = Member::start(
        "a",
        through(&kafka, &proxy, &topic),
        sled(dir.path()),
        &history,
    );
    let feed = Feed::start(&kafka, &topic, PARTITIONS, KEYS, Duration::from_millis(50));
    running.wait(100);
    // So many more effects.
    let goes_on = |count: usize| running.wait((history.len() + count).min(KEYS));
    harm(&proxy, &goes_on);
    proxy.heal();
    let keys = feed.wait();
    running.wait(KEYS);
    broker::wait_caught_up(&kafka, &topic, &topic);
    running.stop();
    history.assert_each_once(&keys);
}

fn through(kafka: &SharedBroker, proxy: &FaultProxy, topic: &str) -> idempotent_consumer::Builder {
    let mut config = config(kafka, topic);
    config
        .set("bootstrap.servers", proxy.local_addr().to_string())
        .set("session.timeout.ms", "6000")
        .set("socket.timeout.ms", "1500")
        .set("reconnect.backoff.max.ms", "300");
    builder(config, topic).offset_interval(Duration::from_millis(50))
}

#[test]
fn lost_answers_to_commits_lose_and_repeat_nothing() {
    read_through("lost-commits", |proxy, goes_on| {
        proxy.drop_replies(ApiKey::OFFSET_COMMIT, 1);
        goes_on(200);
        proxy.disconnect_before_replies(ApiKey::OFFSET_COMMIT, 3);
        proxy
            .wait_for(broker::DEADLINE, |stats| stats.dropped >= 4)
            .unwrap();
        goes_on(200);
    });
}

#[test]
fn cut_connections_lose_and_repeat_nothing() {
    read_through("cuts", |proxy, goes_on| {
        for _ in 0..4 {
            proxy.cut();
            proxy
                .wait_for(broker::DEADLINE, |stats| stats.open == 0)
                .unwrap();
            proxy.restore();
            goes_on(200);
        }
        for kind in [ApiKey::FETCH, ApiKey::HEARTBEAT, ApiKey::OFFSET_FETCH] {
            proxy.disconnect_before_replies(kind, 2);
            goes_on(100);
        }
    });
}

#[test]
fn slow_and_stalled_connections_lose_and_repeat_nothing() {
    read_through("delays", |proxy, goes_on| {
        proxy.change(|faults| faults.delay_all = Duration::from_millis(40));
        goes_on(300);
        proxy.heal();
        for _ in 0..3 {
            proxy.stall();
            let before = proxy.stats().requests.values().sum::<u64>();
            let more = |stats: &idempotent_consumer::testkit::Stats| {
                stats.requests.values().sum::<u64>() > before
            };
            // Something is held back now.
            proxy.wait_for(broker::DEADLINE, more).unwrap();
            proxy.resume();
            goes_on(100);
        }
    });
}
