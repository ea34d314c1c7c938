//! Many records, copies among them, and kills while they are copied.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::producer::Producer as _;

use crate::broker::{self, DEADLINE};
use crate::service::Bench;
use crate::support::kafka::Kafka;
use crate::written::{self, Line, Sent};
use crate::{admin, feed};

const IN_PARTITIONS: i32 = 3;
const OUT_PARTITIONS: i32 = 4;
const RECORD_KEYS: usize = 5_000;
const KILLS: usize = 5;
const COPIES_IN_TEN: usize = 3;
/// What the copies' own times are ahead of their events', which are a millisecond apart.
const LATER_MS: i64 = 10_000_000;
/// How old the first event is: younger than what the topics would delete at once.
const AGE_MS: u128 = 3 * 3_600_000;

fn records() -> usize {
    match std::env::var("IDEMPOTENT_CONSUMER_TOPIC_RECORDS") {
        Ok(count) => count
            .parse()
            .expect("IDEMPOTENT_CONSUMER_TOPIC_RECORDS is a number"),
        Err(_) => 200_000,
    }
}

/// A small generator, so that a run can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// Sends `count` records, three in ten of them copies of earlier ones, and gives how many are none.
fn produce(kafka: &Kafka, topic: &str, began_ms: i64, count: usize) -> usize {
    let producer = feed::producer(kafka.bootstrap(), &[("linger.ms", "20")]);
    let (mut events, mut random) = (0, Random(7));
    for _ in 0..count {
        let copies = events > 0 && random.below(10) < COPIES_IN_TEN;
        let (event, later) = if copies {
            // As near as a retry, or as far as a second session.
            let back = if random.below(2) == 0 { 10 } else { events };
            (events - 1 - random.below(back.min(events)), LATER_MS)
        } else {
            events += 1;
            (events - 1, 0)
        };
        let key = event % RECORD_KEYS;
        let (id, value) = (format!("e-{event}"), format!("v-{event}"));
        let record = Sent {
            partition: i32::try_from(key).unwrap() % IN_PARTITIONS,
            timestamp_ms: Some(began_ms + i64::try_from(event).unwrap() + later),
            key: Some(&format!("k-{key}").into_bytes()),
            value: Some(value.as_bytes()),
            headers: &[("event-id", Some(&id)), ("trace", Some(&value))],
        };
        written::send(&producer, topic, &record);
    }
    producer.flush(DEADLINE).unwrap();
    events
}

/// Each event once and as it was, those of one record key in their order and in one partition.
fn assert_each_once(lines: &[Line], began_ms: i64, events: usize) {
    assert_eq!(lines.len(), events);
    let mut seen = vec![false; events];
    let mut last: HashMap<&str, (usize, i32)> = HashMap::new();
    for line in lines {
        let event: usize = line.value.strip_prefix("v-").unwrap().parse().unwrap();
        assert!(
            !std::mem::replace(&mut seen[event], true),
            "twice: {line:?}"
        );
        let ms = began_ms + i64::try_from(event).unwrap();
        assert_eq!(line.timestamp, format!("CreateTime:{ms}"), "{line:?}");
        assert_eq!(line.key, format!("k-{}", event % RECORD_KEYS));
        let headers = format!("event-id:e-{event},trace:v-{event}");
        assert_eq!(line.headers, headers);
        if let Some((before, partition)) = last.insert(&line.key, (event, line.partition)) {
            assert!(before < event, "{before} before {line:?}");
            assert_eq!(partition, line.partition, "{line:?}");
        }
    }
    assert!(seen.iter().all(|seen| *seen), "some are missing");
}

#[test]
fn every_event_is_written_once_and_in_order_although_copies_come_and_the_service_is_killed() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "million", IN_PARTITIONS);
    let to = admin::topic(&kafka, "million-once", OUT_PARTITIONS);
    let bench = Bench::new(&kafka, from, to);
    let started = Instant::now();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let began_ms = i64::try_from(now.as_millis() - AGE_MS).unwrap();
    let count = records();
    let events = produce(&kafka, &bench.from, began_ms, count);
    println!(
        "{count} records, {events} events, sent after {:?}",
        started.elapsed()
    );

    let written = || kafka.end_offsets(&bench.to).into_iter().sum::<i64>();
    let step = i64::try_from(events / (KILLS + 1)).unwrap();
    let mut random = Random(u64::from(std::process::id()));
    for _ in 0..KILLS {
        let before = written();
        let mut service = bench.start("a");
        broker::wait_for("a part of the records", || {
            service.assert_running();
            written() >= before + step
        });
        // The moment of the kill; nothing is waited for.
        std::thread::sleep(Duration::from_micros(random.below(100_000) as u64));
        service.kill();
    }
    let mut service = bench.start("a");
    bench.wait_caught_up(&mut service);
    let said = service.stop();
    println!("copied after {:?}", started.elapsed());
    assert!(said.contains("stopped"), "{said}");
    let lines = written::all(&kafka, &bench.to, events);
    assert_each_once(&lines, began_ms, events);
    println!("read after {:?}", started.elapsed());
}
