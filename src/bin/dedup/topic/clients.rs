//! What of librdkafka's settings is the consumer's, and what the producer's.

use idempotent_consumer::ClientConfig;

/// librdkafka's own.
const BATCH_BYTES: usize = 1_000_000;

/// Settings that mean something to a producer alone.
const OF_THE_PRODUCER: [&str; 28] = [
    "acks",
    "batch.num.messages",
    "batch.size",
    "compression.codec",
    "compression.level",
    "compression.type",
    "delivery.report.only.error",
    "delivery.timeout.ms",
    "enable.gapless.guarantee",
    "enable.idempotence",
    "linger.ms",
    "message.copy.max.bytes",
    "message.max.bytes",
    "message.send.max.retries",
    "message.timeout.ms",
    "partitioner",
    "produce.offset.report",
    "queue.buffering.backpressure.threshold",
    "queue.buffering.max.kbytes",
    "queue.buffering.max.messages",
    "queue.buffering.max.ms",
    "queuing.strategy",
    "request.required.acks",
    "request.timeout.ms",
    "retries",
    "sticky.partitioning.linger.ms",
    "transaction.timeout.ms",
    "transactional.id",
];

/// Those of either, beside the ones that the producer takes over from the consumer by itself.
const OF_BOTH: [&str; 4] = [
    "enable.metrics.push",
    "max.in.flight",
    "max.in.flight.requests.per.connection",
    "receive.message.max.bytes",
];

/// The consumer's settings and the producer's. `batch_bytes_max` is what the output takes at once,
/// where that is known.
pub(super) fn apart(
    kafka: &ClientConfig,
    batch_bytes_max: Option<usize>,
) -> (ClientConfig, ClientConfig) {
    let (mut consumer, mut producer) = (kafka.clone(), ClientConfig::new());
    for name in OF_BOTH {
        if let Some(value) = kafka.get(name) {
            producer.set(name, value);
        }
    }
    for name in OF_THE_PRODUCER {
        for name in [name, &format!("topic.{name}")] {
            if let Some(value) = kafka.get(name) {
                producer.set(name, value);
                consumer.remove(name);
            }
        }
    }
    // The broker counts a batch, not a record: many small ones could be too large together.
    if let (None, Some(bytes_max)) = (producer.get("batch.size"), batch_bytes_max) {
        producer.set("batch.size", bytes_max.clamp(1, BATCH_BYTES).to_string());
    }
    (consumer, producer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_reaches_the_client_that_it_is_for() {
        for (name, of_consumer, of_producer) in [
            ("request.timeout.ms", false, true),
            ("topic.request.timeout.ms", false, true),
            ("queue.buffering.max.messages", false, true),
            ("queue.buffering.max.kbytes", false, true),
            ("queue.buffering.backpressure.threshold", false, true),
            ("linger.ms", false, true),
            // The audit of the producer looks at it.
            ("max.in.flight", true, true),
            ("max.in.flight.requests.per.connection", true, true),
            ("session.timeout.ms", true, false),
            ("client.id", true, false),
        ] {
            let mut kafka = ClientConfig::new();
            kafka.set(name, "1");
            let (consumer, producer) = apart(&kafka, None);
            let found = (consumer.get(name).is_some(), producer.get(name).is_some());
            assert_eq!(found, (of_consumer, of_producer), "{name}");
        }
    }

    #[test]
    fn a_batch_is_no_larger_than_the_output_takes_unless_it_was_chosen() {
        let batch = |kafka: &ClientConfig, max| {
            let (_, producer) = apart(kafka, max);
            producer.get("batch.size").map(str::to_owned)
        };
        let mut kafka = ClientConfig::new();
        assert_eq!(batch(&kafka, None), None);
        assert_eq!(batch(&kafka, Some(500)).as_deref(), Some("500"));
        assert_eq!(batch(&kafka, Some(5_000_000)).as_deref(), Some("1000000"));
        kafka.set("batch.size", "700");
        assert_eq!(batch(&kafka, Some(500)).as_deref(), Some("700"));
    }
}
