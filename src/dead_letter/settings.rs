//! The producer's settings: what is taken from the consumer, what is looked through, what is set.

use super::DeadLetter;
use super::names::is_topic;
use crate::audit::{self, Finding};
use crate::source::ClientConfig;
use crate::source::kafka::not_understood;

const BOOTSTRAP: [&str; 2] = ["bootstrap.servers", "metadata.broker.list"];

/// How the settings begin that mean the same to a producer as to a consumer: where the brokers are,
/// how they are reached, who asks, what is logged.
const SHARED: &[&str] = &[
    "api.version",
    "bootstrap.servers",
    "broker.",
    "client.",
    "connections.max.idle.ms",
    "debug",
    "enable.sasl.",
    "enable.ssl.",
    "https.",
    "log.",
    "log_level",
    "metadata.",
    "plugin.library.paths",
    "reconnect.",
    "retry.backoff.",
    "sasl.",
    "security.",
    "socket.",
    "ssl.",
    "ssl_",
    "topic.metadata.",
];

impl DeadLetter {
    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }

    /// Whether letters go to another cluster than the consumer reads from.
    pub(super) fn is_elsewhere(&self) -> bool {
        BOOTSTRAP.iter().any(|name| self.config.get(name).is_some())
    }

    /// What is at fault with the topic's name and the producer's settings.
    pub(crate) fn findings(&self, consumer: &ClientConfig, topics: &[String]) -> Vec<Finding> {
        let chosen = self.chosen(consumer);
        let mut findings = audit::dead_letter(chosen.config_map());
        let mut refuse = |reason, fix| {
            let topic = Some(self.topic.clone());
            findings.push(Finding::new("dead_letter", topic, reason, fix));
        };
        if !is_topic(&self.topic) {
            refuse(
                "Kafka has no topic of such a name",
                "choose 1 to 249 of the characters a-z, A-Z, 0-9, `.`, `_` and `-`",
            );
        }
        if !self.is_elsewhere() && topics.contains(&self.topic) {
            refuse(
                "the consumer reads it, and its letters would come back to it for ever",
                "choose a topic that it does not read",
            );
        }
        // At build, not at the start: what librdkafka does not take needs no broker to be found.
        findings.extend(not_understood(&chosen));
        findings
    }

    /// The producer's whole configuration.
    pub(super) fn effective(&self, consumer: &ClientConfig) -> ClientConfig {
        completed(self.chosen(consumer), audit::LETTERS_DEFAULTS)
    }

    /// What the user chose, here and for the consumer.
    fn chosen(&self, consumer: &ClientConfig) -> ClientConfig {
        if self.is_elsewhere() {
            return self.config.clone();
        }
        reached_as(consumer, &self.config)
    }
}

/// A producer's own settings, with those of the consumer's that say how its brokers are reached.
pub(crate) fn reached_as(consumer: &ClientConfig, own: &ClientConfig) -> ClientConfig {
    let mut config = own.clone();
    // Its map alone is not enough: in place of passwords it has a word that hides them.
    for setting in consumer.config_map().into_keys() {
        let shared = SHARED.iter().any(|start| setting.starts_with(start));
        if let (true, None, Some(value)) = (shared, config.get(setting), consumer.get(setting)) {
            config.set(setting, value);
        }
    }
    config
}

/// A producer's settings, with what is set whatever was chosen, and what only where nothing was.
pub(crate) fn completed(mut config: ClientConfig, defaults: &[(&[&str], &str)]) -> ClientConfig {
    for (setting, value) in audit::PRODUCERS_FORCED {
        config.set(*setting, *value);
    }
    for (names, value) in defaults {
        let set = |name: &&str| {
            config.get(name).is_some() || config.get(&format!("topic.{name}")).is_some()
        };
        if let (false, [name, ..]) = (names.iter().any(set), names) {
            config.set(*name, *value);
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(settings: &[(&str, &str)]) -> ClientConfig {
        let mut config = ClientConfig::new();
        for (setting, value) in settings {
            config.set(*setting, *value);
        }
        config
    }

    fn consumer() -> ClientConfig {
        config(&[
            ("bootstrap.servers", "localhost:9092"),
            ("sasl.username", "billing"),
            ("sasl.password", "secret"),
            ("socket.keepalive.enable", "true"),
            ("client.id", "billing"),
            ("group.id", "billing"),
            ("message.max.bytes", "1024"),
            ("max.in.flight", "1000"),
            ("auto.offset.reset", "latest"),
        ])
    }

    #[test]
    fn a_producer_reaches_the_brokers_as_the_consumer_does_and_takes_nothing_else_from_it() {
        let effective = DeadLetter::to_topic("orders.DLT").effective(&consumer());
        let names = effective.config_map().into_keys();
        let mut given: Vec<_> = names
            .map(|name| (name, effective.get(name).unwrap()))
            .collect();
        given.sort_unstable();
        let expected = [
            ("acks", "all"),
            ("allow.auto.create.topics", "false"),
            ("bootstrap.servers", "localhost:9092"),
            ("client.id", "billing"),
            ("delivery.report.only.error", "false"),
            ("delivery.timeout.ms", "60000"),
            ("enable.idempotence", "true"),
            ("linger.ms", "0"),
            ("message.max.bytes", "100000000"),
            ("partitioner", "murmur2_random"),
            ("sasl.password", "secret"),
            ("sasl.username", "billing"),
            ("socket.keepalive.enable", "true"),
        ];
        assert_eq!(given, expected);
    }

    #[test]
    fn another_cluster_is_told_no_password_of_this_one() {
        let elsewhere = config(&[("metadata.broker.list", "other:9092")]);
        let dead_letter = DeadLetter::to_topic("orders").config(elsewhere);
        let effective = dead_letter.effective(&consumer());
        assert_eq!(effective.get("sasl.password"), None);
        assert_eq!(effective.get("bootstrap.servers"), None);
        let topics = ["orders".to_owned()];
        assert_eq!(
            dead_letter.findings(&consumer(), &topics),
            [],
            "the same name elsewhere"
        );
    }

    #[test]
    fn own_settings_go_before_the_consumers_and_before_defaults() {
        let own = config(&[
            ("client.id", "letters"),
            ("topic.message.timeout.ms", "5000"),
            ("partitioner", "consistent"),
        ]);
        let effective = DeadLetter::to_topic("orders.DLT")
            .config(own)
            .effective(&consumer());
        assert_eq!(effective.get("client.id"), Some("letters"));
        assert_eq!(effective.get("delivery.timeout.ms"), None);
        assert_eq!(effective.get("partitioner"), Some("consistent"));
    }

    // C088
    #[test]
    fn what_would_lose_letters_or_never_end_is_refused_with_all_else_that_is_at_fault() {
        let refused = |topic: &str, settings: &[(&str, &str)]| {
            let dead_letter = DeadLetter::to_topic(topic).config(config(settings));
            let findings = dead_letter.findings(&consumer(), &["orders".to_owned()]);
            let settings = findings.into_iter().map(|finding| finding.setting);
            settings.collect::<Vec<_>>()
        };
        assert_eq!(refused("orders.DLT", &[]), [""; 0]);
        assert_eq!(refused("orders", &[]), ["dead_letter"]);
        assert_eq!(refused("or ders", &[]), ["dead_letter"]);
        assert_eq!(refused("", &[("acks", "1")]), ["acks", "dead_letter"]);
        assert_eq!(refused("orders.DLT", &[("ack", "all")]), ["ack"]);
        assert_eq!(
            refused("orders.DLT", &[("delivery.timeout.ms", "soon")]),
            ["delivery.timeout.ms"]
        );
    }
}
