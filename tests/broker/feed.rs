//! Producers.

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

/// A stream of records: `total` keys over all partitions, every fifth followed by a copy of an
/// earlier one, in its partition.
pub(crate) struct Feed {
    pub(crate) keys: Vec<String>,
    thread: JoinHandle<()>,
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
        let keys: Vec<_> = (0..total).map(|number| format!("key-{number}")).collect();
        let (bootstrap, topic) = (kafka.bootstrap().to_owned(), topic.to_owned());
        let sent = keys.clone();
        let thread = std::thread::spawn(move || {
            let producer = producer(&bootstrap, &[]);
            let send_number = |number: usize| {
                let partition = i32::try_from(number % partitions).unwrap();
                send(
                    &producer,
                    &topic,
                    partition,
                    &sent[number],
                    sent[number].as_bytes(),
                );
            };
            for number in 0..total {
                send_number(number);
                if number % 5 == 0 {
                    // As near as a retry, and as far as a second session.
                    send_number(number.saturating_sub(partitions));
                    send_number(number / 2);
                }
                if number % BURST == 0 {
                    producer.poll(Duration::ZERO);
                    std::thread::sleep(pause);
                }
            }
            producer.flush(DEADLINE).unwrap();
        });
        Self { keys, thread }
    }

    /// Waits until all of it is in the topic.
    pub(crate) fn wait(self) -> Vec<String> {
        self.thread.join().unwrap();
        self.keys
    }
}
