//! What both clients call the settings of a producer, and what holds where nothing is set.

use super::Client;

/// A setting that a rule looks at.
pub(super) struct Known {
    /// Kafka's own name for it, which librdkafka takes too, if both have the setting.
    pub(super) name: &'static str,
    /// Other names that librdkafka has for it.
    pub(super) aliases: &'static [&'static str],
    /// librdkafka's default, empty for none; `None` where it has no such setting.
    pub(super) librdkafka: Option<&'static str>,
    /// The same of the Java client.
    pub(super) java: Option<&'static str>,
    pub(super) kind: Kind,
}

/// What its value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Flag,
    Whole,
    /// Whole, but that librdkafka takes fractions.
    Fraction,
    /// A number of replicas, or the word for all that are in sync.
    Acks,
    Text,
}

impl Known {
    pub(super) fn default(&self, client: Client) -> Option<&'static str> {
        match client {
            Client::Librdkafka => self.librdkafka,
            Client::Java => self.java,
        }
    }

    const fn both(
        name: &'static str,
        aliases: &'static [&'static str],
        librdkafka: &'static str,
        java: &'static str,
        kind: Kind,
    ) -> Self {
        Self {
            name,
            aliases,
            librdkafka: Some(librdkafka),
            java: Some(java),
            kind,
        }
    }

    const fn librdkafka(name: &'static str, default: &'static str, kind: Kind) -> Self {
        Self {
            name,
            aliases: &[],
            librdkafka: Some(default),
            java: None,
            kind,
        }
    }
}

/// Defaults: librdkafka's of 2.12, which say no other than its `CONFIGURATION.md`; the Java
/// client's of 4.3, which differ from those since 3.0 in `linger.ms` alone (0 before 4.0). Both are
/// asked for them in tests.
pub(super) const KNOWN: &[Known] = &[
    Known::both("enable.idempotence", &[], "false", "true", Kind::Flag),
    Known::both("acks", &["request.required.acks"], "-1", "all", Kind::Acks),
    Known::both(
        "retries",
        &["message.send.max.retries"],
        "2147483647",
        "2147483647",
        Kind::Whole,
    ),
    Known::both(
        "max.in.flight.requests.per.connection",
        &["max.in.flight"],
        "1000000",
        "5",
        Kind::Whole,
    ),
    Known::both(
        "delivery.timeout.ms",
        &["message.timeout.ms"],
        "300000",
        "120000",
        Kind::Whole,
    ),
    Known::both("request.timeout.ms", &[], "30000", "30000", Kind::Whole),
    Known::both(
        "linger.ms",
        &["queue.buffering.max.ms"],
        "5",
        "5",
        Kind::Fraction,
    ),
    Known::both("transactional.id", &[], "", "", Kind::Text),
    Known::both("transaction.timeout.ms", &[], "60000", "60000", Kind::Whole),
    Known::librdkafka("socket.timeout.ms", "60000", Kind::Whole),
    Known::librdkafka("queuing.strategy", "fifo", Kind::Text),
    Known::librdkafka("queue.buffering.backpressure.threshold", "1", Kind::Whole),
    Known::librdkafka("enable.gapless.guarantee", "false", Kind::Flag),
    Known::librdkafka("delivery.report.only.error", "false", Kind::Flag),
    Known {
        name: "transaction.two.phase.commit.enable",
        aliases: &[],
        librdkafka: None,
        java: Some("false"),
        kind: Kind::Flag,
    },
];
