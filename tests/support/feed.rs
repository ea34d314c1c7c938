//! Producers.

#![allow(
    dead_code,
    reason = "two test binaries compile this file, and each uses a part of it"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use crate::broker::DEADLINE;
use crate::support::kafka::Kafka;

pub(crate) fn producer(bootstrap: &str, settings: &[(&str, &str)]) -> BaseProducer {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", bootstrap)
        .set("enable.idempotence", "true")
        .set("reconnect.backoff.max.ms", "300")
        .set("linger.ms", "2");
    for (key, value) in settings {
        config.set(*key, *value);
    }
    config.create().unwrap()
}

/// Hands one record to a producer, which may be full for a while.
pub(crate) fn send(producer: &BaseProducer, topic: &str, partition: i32, key: &str, value: &[u8]) {
    let mut record = BaseRecord::to(topic)
        .partition(partition)
        .key(key)
        .payload(value);
    loop {
        match producer.send(record) {
            Ok(()) => return,
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), again)) => {
                record = again;
                producer.poll(Duration::from_millis(10));
            }
            Err((error, _)) => panic!("producing: {error}"),
        }
    }
}

/// Produces keys to one partition, each with itself as the value, and waits until they are there.
pub(crate) fn produce<K: AsRef<str>>(kafka: &Kafka, topic: &str, partition: i32, keys: &[K]) {
    let producer = producer(kafka.bootstrap(), &[]);
    for key in keys {
        send(
            &producer,
            topic,
            partition,
            key.as_ref(),
            key.as_ref().as_bytes(),
        );
    }
    producer.flush(DEADLINE).unwrap();
}

/// A stream of records: at most `total` keys over all partitions, every fifth followed by copies
/// of earlier ones, each in its partition.
pub(crate) struct Feed {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<String>>,
}

/// Keys produced in one go, before the pause.
const BURST: usize = 50;

impl Feed {
    pub(crate) fn start(
        kafka: &Kafka,
        topic: &str,
        partitions: usize,
        total: usize,
        pause: Duration,
    ) -> Self {
        let (bootstrap, topic) = (kafka.bootstrap().to_owned(), topic.to_owned());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let producer = producer(&bootstrap, &[]);
            let send_number = |number: usize| {
                let key = format!("key-{number}");
                let partition = i32::try_from(number % partitions).unwrap();
                send(&producer, &topic, partition, &key, key.as_bytes());
            };
            let mut sent = 0;
            while sent < total && !stopped.load(Ordering::Relaxed) {
                send_number(sent);
                if sent % 5 == 0 {
                    // As near as a retry, and as far as a second session.
                    send_number(sent.saturating_sub(partitions));
                    send_number(sent / 2);
                }
                sent += 1;
                if sent % BURST == 0 {
                    producer.poll(Duration::ZERO);
                    std::thread::sleep(pause);
                }
            }
            producer.flush(DEADLINE).unwrap();
            (0..sent).map(|number| format!("key-{number}")).collect()
        });
        Self { stop, thread }
    }

    /// Waits until all of it is in the topic, and gives the keys.
    pub(crate) fn wait(self) -> Vec<String> {
        self.thread.join().unwrap()
    }

    /// Ends it early.
    pub(crate) fn stop(self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.wait()
    }
}
