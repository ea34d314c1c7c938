//! Partitions that move from one instance to another.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rdkafka::producer::Producer as _;

use crate::broker::{self, DEADLINE};
use crate::service::{self, Bench, Service};
use crate::written::{self, Sent};
use crate::{admin, feed};

const PARTITIONS: usize = 4;

/// Sends events, each with a copy in its partition, until it is told to end.
fn feed_all(bench: &Bench<'_>, sent: &AtomicUsize, done: &AtomicBool) {
    let producer = feed::producer(bench.kafka.bootstrap(), &[]);
    while !done.load(Ordering::Relaxed) {
        for _ in 0..100 {
            let number = sent.fetch_add(1, Ordering::Relaxed);
            let (id, key) = (number.to_string(), format!("k-{}", number % PARTITIONS));
            let record = Sent {
                partition: i32::try_from(number % PARTITIONS).unwrap(),
                key: Some(key.as_bytes()),
                value: Some(id.as_bytes()),
                headers: &[("event-id", Some(&id))],
                timestamp_ms: None,
            };
            written::send(&producer, &bench.from, &record);
            written::send(&producer, &bench.from, &record);
        }
        producer.flush(DEADLINE).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until an instance has so many partitions.
fn wait_has(service: &mut Service, partitions: usize) {
    let address = service.address();
    let line = format!("dedup_topic_assigned_partitions {partitions}\n");
    broker::wait_for(&format!("{partitions} partitions of an instance"), || {
        service.assert_running();
        service::get(address, "/metrics").1.contains(&line)
    });
}

#[test]
fn instances_share_the_partitions_and_move_them_in_order_and_after_a_kill() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "shared", i32::try_from(PARTITIONS).unwrap());
    let to = admin::topic(&kafka, "shared-once", 3);
    let bench = Bench::new(&kafka, from, to);
    let (sent, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let feeding = scope.spawn(|| feed_all(&bench, &sent, &done));
        let start = |name| bench.start_with(name, &["--listen", "0"]);
        let mut first = start("a");
        wait_has(&mut first, 4);
        let mut second = start("b");
        wait_has(&mut second, 2);
        wait_has(&mut first, 2);
        first.stop();
        wait_has(&mut second, 4);
        let mut first = start("a");
        wait_has(&mut first, 2);
        second.kill();
        wait_has(&mut first, 4);
        done.store(true, Ordering::Relaxed);
        feeding.join().unwrap();
        bench.wait_caught_up(&mut first);
        first.stop();
    });
    let sent = sent.load(Ordering::Relaxed);
    let mut lines = written::all(&kafka, &bench.to, sent);
    let mut last = [None; PARTITIONS];
    for line in &lines {
        let number: usize = line.value.parse().unwrap();
        let before = last[number % PARTITIONS].replace(number);
        assert!(before < Some(number), "{before:?} before {line:?}");
    }
    lines.sort_by_key(|line| line.value.parse::<usize>().unwrap());
    lines.dedup_by(|left, right| left.value == right.value);
    assert_eq!(lines.len(), sent);
}
