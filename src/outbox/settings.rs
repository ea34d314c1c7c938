//! The producer's settings: what is taken from the consumer, what is looked through, what is set.

use std::time::Duration;

use crate::audit::{self, Finding, Rule, is_true};
use crate::dead_letter::{completed, reached_as};
use crate::source::ClientConfig;
use crate::source::kafka::not_understood;

/// What can be chosen of a transactional producer.
pub(super) struct Choices {
    pub(super) own: ClientConfig,
    pub(super) transactional_id: Option<String>,
    pub(super) timeout: Duration,
    pub(super) patience: Duration,
}

pub(super) const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
const TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// A member that takes a partition over waits for the end of its last transaction: so long, and up
/// to ten seconds more until the brokers look (`transaction.abort.timed.out.transaction.cleanup.interval.ms`).
const TIMEOUT_MAX: Duration = Duration::from_secs(30);
/// Below `max.poll.interval.ms`: a rebalance may have to wait for it.
pub(super) const PATIENCE_DEFAULT: Duration = Duration::from_secs(120);
const PATIENCE_MAX: Duration = Duration::from_secs(3600);
const POLL_INTERVAL: &str = "max.poll.interval.ms";
/// librdkafka's default.
const POLL_INTERVAL_DEFAULT: Duration = Duration::from_secs(300);
/// For the rest of a rebalance: the group's offsets are asked for.
const REBALANCE_MAX: Duration = Duration::from_secs(45);

const RULES: &[Rule] = &[
    Rule {
        names: &["bootstrap.servers", "metadata.broker.list"],
        breaks: |_| true,
        reason: "records and positions are committed in one transaction, and that is one cluster's",
        fix: "remove it: the consumer's is taken",
    },
    Rule {
        names: &["transactional.id"],
        breaks: |_| true,
        reason: "it must be one store's, for as long as there is that store",
        fix: "remove it; `Transactional::transactional_id` sets another than the store's own",
    },
    Rule {
        names: &["transaction.timeout.ms"],
        breaks: |_| true,
        reason: "others wait for it as well",
        fix: "remove it, and use `Transactional::transaction_timeout`",
    },
    Rule {
        names: &["delivery.timeout.ms", "message.timeout.ms"],
        breaks: |_| true,
        reason: "a record is tried for as long as its transaction may last",
        fix: "remove it, and use `Transactional::transaction_timeout`",
    },
    Rule {
        names: &["enable.idempotence"],
        breaks: |value| !is_true(value),
        reason: "transactions need it",
        fix: "remove it: idempotence is switched on here",
    },
    Rule {
        names: &["acks", "request.required.acks"],
        breaks: |value| !matches!(value, "all" | "-1"),
        reason: "a leader's death would lose records of a committed transaction",
        fix: "remove it: all is set here",
    },
    Rule {
        names: &["retries", "message.send.max.retries"],
        breaks: |value| value == "0",
        reason: "idempotence needs retries",
        fix: "remove it: the transaction's time-out is what bounds them",
    },
    Rule {
        names: &["max.in.flight.requests.per.connection", "max.in.flight"],
        breaks: |value| value.parse().is_ok_and(|count: i64| count > 5),
        reason: "brokers keep the last five requests of a producer to know a repeat by",
        fix: "choose 5 at most, or remove it",
    },
    Rule {
        names: &["queuing.strategy"],
        breaks: |value| value == "lifo",
        reason: "idempotence needs the order of sending",
        fix: "remove it",
    },
    Rule {
        names: &["delivery.report.only.error"],
        breaks: is_true,
        reason: "no record would ever be confirmed",
        fix: "remove it",
    },
    Rule {
        names: &["allow.auto.create.topics"],
        breaks: is_true,
        reason: "a mistyped name would become a topic that nobody reads",
        fix: "remove it, and create the topic",
    },
];

/// One that cannot be read is refused by itself.
fn poll_interval(consumer: &ClientConfig) -> Duration {
    let set = consumer.get(POLL_INTERVAL).map(str::parse);
    set.and_then(Result::ok)
        .map_or(POLL_INTERVAL_DEFAULT, Duration::from_millis)
}

/// The partitioner: the Java client's, so that records of one key meet those of Java services. The
/// size: what a consumer receives at most, so that the topic's own limit decides. Lingering: all
/// records of a transaction are there at once. Metadata: a topic that does not exist is told as such
/// before its records run into the transaction's time-out.
const DEFAULTS: &[(&[&str], &str)] = &[
    (&["partitioner"], "murmur2_random"),
    (&["message.max.bytes"], "100000000"),
    (&["linger.ms", "queue.buffering.max.ms"], "1"),
    (&["topic.metadata.propagation.max.ms"], "500"),
];

impl Choices {
    /// What is at fault.
    pub(super) fn findings(&self, consumer: &ClientConfig) -> Vec<Finding> {
        let mut findings = audit::findings(self.own.config_map(), &[], RULES);
        let mut refuse = |setting: &str, value: Option<String>, reason, fix| {
            findings.push(Finding::new(setting, value, reason, fix));
        };
        if !(TIMEOUT_MIN..=TIMEOUT_MAX).contains(&self.timeout) {
            refuse(
                "transaction_timeout",
                Some(format!("{:?}", self.timeout)),
                "a process that dies holds up its partitions and the readers of its topics for \
                 so long",
                "choose between 1 s and 30 s",
            );
        }
        if self.patience > PATIENCE_MAX {
            refuse(
                "patience",
                Some(format!("{:?}", self.patience)),
                "what waits so long is not meant",
                "choose an hour at most",
            );
        }
        if self.patience + REBALANCE_MAX >= poll_interval(consumer) && self.patience <= PATIENCE_MAX
        {
            refuse(
                "patience",
                Some(format!("{:?}", self.patience)),
                "a rebalance waits for it, and asks for the group's offsets for up to 45 s then: \
                 past max.poll.interval.ms (300000 unless it is set) the group shuts the member out",
                "choose `Transactional::patience` at least 46 s below max.poll.interval.ms",
            );
        }
        if self.transactional_id.as_deref() == Some("") {
            refuse(
                "transactional_id",
                Some(String::new()),
                "an empty id is none",
                "name one, or leave it to the store",
            );
        }
        if findings.is_empty() {
            findings.extend(not_understood(&self.effective(consumer, "checked")));
        }
        findings
    }

    /// The producer's whole configuration.
    pub(super) fn effective(
        &self,
        consumer: &ClientConfig,
        transactional_id: &str,
    ) -> ClientConfig {
        let mut config = completed(reached_as(consumer, &self.own), DEFAULTS);
        config.set("transactional.id", transactional_id).set(
            "transaction.timeout.ms",
            self.timeout.as_millis().to_string(),
        );
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(settings: &[(&str, &str)]) -> Choices {
        let mut own = ClientConfig::new();
        for (setting, value) in settings {
            own.set(*setting, *value);
        }
        Choices {
            own,
            transactional_id: None,
            timeout: TIMEOUT_DEFAULT,
            patience: PATIENCE_DEFAULT,
        }
    }

    fn consumer() -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", "localhost:9092")
            .set("group.id", "shop")
            .set("client.id", "shop-1")
            .set("sasl.password", "secret");
        config
    }

    // C088
    #[test]
    fn each_setting_that_could_lose_repeat_or_part_records_is_named() {
        assert_eq!(choices(&[("linger.ms", "20")]).findings(&consumer()), []);
        let bad = [
            ("bootstrap.servers", "other:9092"),
            ("metadata.broker.list", "other:9092"),
            ("transactional.id", "mine"),
            ("transaction.timeout.ms", "60000"),
            ("delivery.timeout.ms", "1000"),
            ("topic.message.timeout.ms", "1000"),
            ("enable.idempotence", "false"),
            ("acks", "1"),
            ("topic.request.required.acks", "0"),
            ("retries", "0"),
            ("message.send.max.retries", "0"),
            ("max.in.flight", "6"),
            ("queuing.strategy", "lifo"),
            ("delivery.report.only.error", "true"),
            ("allow.auto.create.topics", "true"),
            ("linger", "1"),
            ("linger.ms", "soon"),
        ];
        for (setting, value) in bad {
            let findings = choices(&[(setting, value)]).findings(&consumer());
            let [finding] = &findings[..] else {
                panic!("{setting}: {findings:?}")
            };
            assert_eq!(finding.setting, setting);
        }
    }

    #[test]
    fn times_that_hold_up_others_too_long_are_refused_all_at_once() {
        let mut long = choices(&[]);
        long.timeout = Duration::from_secs(31);
        long.patience = Duration::from_secs(4000);
        long.transactional_id = Some(String::new());
        let findings = long.findings(&consumer());
        let settings: Vec<_> = findings.iter().map(|finding| &*finding.setting).collect();
        assert_eq!(
            settings,
            ["transaction_timeout", "patience", "transactional_id"]
        );
    }

    #[test]
    fn patience_that_outlasts_the_groups_is_refused() {
        let said = |seconds: u64, interval_ms: Option<&str>| {
            let mut patient = choices(&[]);
            patient.patience = Duration::from_secs(seconds);
            let mut consumer = consumer();
            if let Some(interval_ms) = interval_ms {
                consumer.set(POLL_INTERVAL, interval_ms);
            }
            let findings = patient.findings(&consumer);
            findings.iter().any(|finding| finding.setting == "patience")
        };
        assert!(!said(254, None) && said(255, None));
        assert!(!said(120, Some("166000")) && said(120, Some("165000")));
        assert!(!said(300, Some("600000")));
    }

    #[test]
    fn the_brokers_are_reached_as_the_consumer_reaches_them() {
        let effective = choices(&[("linger.ms", "20")]).effective(&consumer(), "shop-7");
        for (setting, value) in [
            ("bootstrap.servers", Some("localhost:9092")),
            ("sasl.password", Some("secret")),
            ("client.id", Some("shop-1")),
            ("group.id", None),
            ("linger.ms", Some("20")),
            ("acks", Some("all")),
            ("transactional.id", Some("shop-7")),
            ("transaction.timeout.ms", Some("10000")),
        ] {
            assert_eq!(effective.get(setting), value, "{setting}");
        }
    }
}
