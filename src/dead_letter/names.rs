//! Names of headers, as Spring Kafka's readers of dead letters look for them, and of topics.

pub(super) const ORIGINAL_TOPIC: &str = "kafka_dlt-original-topic";
pub(super) const ORIGINAL_PARTITION: &str = "kafka_dlt-original-partition";
pub(super) const ORIGINAL_OFFSET: &str = "kafka_dlt-original-offset";
pub(super) const ORIGINAL_TIMESTAMP: &str = "kafka_dlt-original-timestamp";
pub(super) const ORIGINAL_GROUP: &str = "kafka_dlt-original-consumer-group";
pub(super) const EXCEPTION: &str = "kafka_dlt-exception-fqcn";
pub(super) const EXCEPTION_MESSAGE: &str = "kafka_dlt-exception-message";
pub(super) const ATTEMPT: &str = "kafka_deliveryAttempt";

/// Whether a header tells where a record came from first.
pub(super) fn is_original(name: &[u8]) -> bool {
    name.starts_with(b"kafka_dlt-original-")
}

/// Whether a header tells about a failure. Spring Kafka writes more of them than are written here.
pub(super) fn is_failure(name: &[u8]) -> bool {
    let starts: [&[u8]; 2] = [b"kafka_dlt-exception-", b"kafka_dlt-key-exception-"];
    name == ATTEMPT.as_bytes() || starts.iter().any(|start| name.starts_with(start))
}

const TOPIC_CHARS_MAX: usize = 249;

/// Whether Kafka allows a topic of this name.
pub(crate) fn is_topic(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=TOPIC_CHARS_MAX).contains(&name.len())
        && !matches!(name, "." | "..")
        && name.bytes().all(allowed)
}
