//! Names of librdkafka's settings: one setting may have several.

/// A second name, and the first.
const ALIASES: [(&str, &str); 11] = [
    ("acks", "request.required.acks"),
    ("auto.commit.enable", "enable.auto.commit"),
    ("compression.type", "compression.codec"),
    ("delivery.timeout.ms", "message.timeout.ms"),
    ("linger.ms", "queue.buffering.max.ms"),
    ("max.in.flight", "max.in.flight.requests.per.connection"),
    ("max.partition.fetch.bytes", "fetch.message.max.bytes"),
    ("retries", "message.send.max.retries"),
    ("sasl.mechanism", "sasl.mechanisms"),
    (
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.id",
    ),
    (
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.secret",
    ),
];

/// Settings of a topic, which librdkafka takes with `topic.` before them as well. By their first
/// names.
const OF_A_TOPIC: [&str; 14] = [
    "auto.commit.interval.ms",
    "auto.offset.reset",
    "compression.codec",
    "compression.level",
    "consume.callback.max.messages",
    "enable.auto.commit",
    "message.timeout.ms",
    "offset.store.method",
    "offset.store.path",
    "partitioner",
    "produce.offset.report",
    "queuing.strategy",
    "request.required.acks",
    "request.timeout.ms",
];

/// The one name by which it is known whether two settings are the same.
pub(super) fn first(name: &str) -> &str {
    let Some(of_a_topic) = name.strip_prefix("topic.") else {
        return aliased(name);
    };
    let of_a_topic = aliased(of_a_topic);
    if OF_A_TOPIC.contains(&of_a_topic) {
        of_a_topic
    } else {
        name
    }
}

fn aliased(name: &str) -> &str {
    let found = ALIASES.iter().find(|(second, _)| *second == name);
    found.map_or(name, |(_, first)| first)
}

/// Whether a variable is what Kubernetes sets for a Service, `KAFKA_SERVICE_HOST` and
/// `KAFKA_PORT_9092_TCP_ADDR`: no setting has such a name. `name` is what stands behind `KAFKA_`.
pub(super) fn is_of_a_service(name: &str) -> bool {
    name.contains("SERVICE_HOST") || name.split('_').any(|word| word == "PORT")
}

/// Whether it can be a setting's name. What cannot is not repeated: a password may have got into it.
pub(super) fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_setting_are_known_as_one() {
        for (one, other) in [
            ("linger.ms", "queue.buffering.max.ms"),
            ("sasl.mechanism", "sasl.mechanisms"),
            ("topic.auto.offset.reset", "auto.offset.reset"),
            ("topic.acks", "request.required.acks"),
        ] {
            assert_eq!(first(one), first(other));
        }
        for name in ["topic.metadata.refresh.sparse", "client.id", "topic.x"] {
            assert_eq!(first(name), name);
        }
    }

    #[test]
    fn what_kubernetes_sets_is_no_setting() {
        for name in [
            "SERVICE_HOST",
            "SERVICE_PORT",
            "SERVICE_PORT_HTTP",
            "PORT",
            "PORT_9092_TCP_ADDR",
        ] {
            assert!(is_of_a_service(name), "{name}");
        }
        for name in ["SASL_KERBEROS_SERVICE_NAME", "PRODUCE_OFFSET_REPORT"] {
            assert!(!is_of_a_service(name), "{name}");
        }
    }
}
