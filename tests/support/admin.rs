//! Topics of a test's own.

#![allow(
    dead_code,
    reason = "two test binaries compile this file, and each uses a part of it"
)]

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;

use crate::broker::wait_for;
use crate::support::kafka::Kafka;

/// A name that no other run on the same broker has.
pub(crate) fn name(idea: &str) -> String {
    format!("{idea}-{}", std::process::id())
}

/// Creates a topic.
pub(crate) fn topic(kafka: &Kafka, idea: &str, partitions: i32) -> String {
    let name = name(idea);
    kafka.create_topic(&name, partitions);
    name
}

/// Creates a topic of one partition with settings.
pub(crate) fn topic_with(kafka: &Kafka, idea: &str, settings: &[(&str, &str)]) -> String {
    let name = name(idea);
    let plain = NewTopic::new(&name, 1, TopicReplication::Fixed(1));
    let topic = settings
        .iter()
        .fold(plain, |topic, (key, value)| topic.set(key, value));
    let created = block_on(client(kafka).create_topics([&topic], &AdminOptions::new()));
    created.unwrap()[0].as_ref().unwrap();
    wait_for("the topic's leader", || {
        std::panic::catch_unwind(|| kafka.end_offsets(&name) == [0]).unwrap_or(false)
    });
    name
}

/// Gives a topic more partitions.
pub(crate) fn grow(kafka: &Kafka, topic: &str, partitions: usize) {
    let more = NewPartitions::new(topic, partitions);
    let grown = block_on(client(kafka).create_partitions([&more], &AdminOptions::new()));
    grown.unwrap()[0].as_ref().unwrap();
}

/// Deletes a topic.
pub(crate) fn delete(kafka: &Kafka, topic: &str) {
    let deleted = block_on(client(kafka).delete_topics(&[topic], &AdminOptions::new()));
    deleted.unwrap()[0].as_ref().unwrap();
}

fn client(kafka: &Kafka) -> AdminClient<DefaultClientContext> {
    ClientConfig::new()
        .set("bootstrap.servers", kafka.bootstrap())
        .create()
        .unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}
