//! A process that is killed at any moment.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::child::{self, Death, Orders};
use crate::feed::Feed;
use crate::{broker, topics};

/// More than is sent before the last kill.
const KEYS_MAX: usize = 10_000_000;
/// Between two bursts of fifty.
const PACE: Duration = Duration::from_millis(20);
const PARTITIONS: usize = 2;
const KILL_WITHIN_MS: u64 = 150;

fn rounds() -> u64 {
    match std::env::var("IDEMPOTENT_CONSUMER_BROKER_ROUNDS") {
        Ok(rounds) => rounds
            .parse()
            .expect("IDEMPOTENT_CONSUMER_BROKER_ROUNDS is a number"),
        Err(_) => 10,
    }
}

#[test]
fn killed_at_any_moment_each_key_is_answered_once_and_in_order() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (from, to) = topics::pair(&kafka, "killed", i32::try_from(PARTITIONS).unwrap());
    let dir = tempfile::tempdir().unwrap();
    // Its next life has its place in the group at once.
    let settings = [
        ("bootstrap.servers", kafka.bootstrap()),
        ("group.id", &from),
        ("group.instance.id", "one"),
        ("session.timeout.ms", "20000"),
        ("fetch.message.max.bytes", "2000"),
    ];
    let orders = Orders {
        settings: settings.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        from: from.clone(),
        to: to.clone(),
        store: dir.path().join("seen"),
        death: Death::Outside,
        timeout_ms: 10_000,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut seed = u64::from(now.subsec_nanos());
    println!("seed {seed}");
    let feed = Feed::start(&kafka, &from, PARTITIONS, KEYS_MAX, PACE);
    let written = || kafka.end_offsets(&to).iter().sum::<i64>();
    for _ in 0..rounds() {
        let before = written();
        let mut process = child::start(&orders);
        broker::wait_for("an answer", || {
            process.assert_running();
            written() > before
        });
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // The moment of the kill; nothing is waited for.
        std::thread::sleep(Duration::from_millis((seed >> 33) % KILL_WITHIN_MS));
        process.kill();
    }
    let keys = feed.stop();
    let mut process = child::start(&orders);
    broker::wait_caught_up(&kafka, &from, &from);
    process.assert_running();
    process.stop();
    topics::assert_once(&kafka, &to, &keys, PARTITIONS);
}
