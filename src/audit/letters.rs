//! The producer of dead letters.

use super::{BOOTSTRAP, Finding, Rule, findings, is_true};

const RULES: &[Rule] = &[
    Rule {
        names: &["enable.idempotence"],
        breaks: |value| !is_true(value),
        reason: "a request that is sent again, because its answer was lost, would write its \
                 letters twice or out of order",
        fix: "remove it: idempotence is switched on here",
    },
    Rule {
        names: &["acks", "request.required.acks"],
        breaks: |value| !matches!(value, "all" | "-1"),
        reason: "a letter would count as written before its replicas have it, and its record be \
                 marked; the leader's death would lose it",
        fix: "remove it: all is set here",
    },
    Rule {
        names: &["retries", "message.send.max.retries"],
        breaks: |value| value == "0",
        reason: "idempotence needs retries, and one moved leader would stop the consumer",
        fix: "remove it: the time-out is what bounds them",
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
        names: &["transactional.id"],
        breaks: |value| !value.is_empty(),
        reason: "letters are confirmed one by one, not in transactions, and outside of one such a \
                 producer sends nothing",
        fix: "remove it",
    },
    Rule {
        names: &["delivery.timeout.ms", "message.timeout.ms"],
        breaks: |value| value == "0",
        reason: "a letter that cannot be written would be waited for without end and in silence",
        fix: "choose a number of milliseconds, or remove it: 60000 is the default here",
    },
    Rule {
        names: &["delivery.report.only.error"],
        breaks: is_true,
        reason: "no letter would ever be confirmed",
        fix: "remove it",
    },
    Rule {
        names: &["allow.auto.create.topics"],
        breaks: is_true,
        reason: "a mistyped name would become a topic that nobody reads",
        fix: "remove it, and create the topic",
    },
    Rule {
        names: &["queue.buffering.max.messages", "queue.buffering.max.kbytes"],
        breaks: |_| true,
        reason: "letters in flight are bounded here, at 64 MiB; a shorter queue in librdkafka would \
                 refuse letters instead of letting them wait",
        fix: "remove it",
    },
];

/// Looks through the settings of a [`DeadLetter`](crate::DeadLetter)'s producer, by librdkafka's
/// names, as it is done at build. Stricter than [`producer`](super::producer), since what a letter's
/// record counts for depends on it; what is not set is no finding, since it is set there. Nothing
/// found is an empty list.
///
/// ```
/// let settings = [("bootstrap.servers", "localhost:9092"), ("acks", "1")];
/// let findings = idempotent_consumer::audit::dead_letter(settings);
/// assert!(findings.iter().any(|finding| finding.setting == "acks"));
/// ```
pub fn dead_letter<'a>(settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Finding> {
    findings(settings, &[BOOTSTRAP], RULES)
}

/// As [`CONSUMER_FORCED`](super::CONSUMER_FORCED), for the producers that this crate makes.
pub(crate) const PRODUCERS_FORCED: &[(&str, &str)] = &[
    ("enable.idempotence", "true"),
    ("acks", "all"),
    ("delivery.report.only.error", "false"),
    ("allow.auto.create.topics", "false"),
];

/// The time-out: a broker's restart passes within a minute, and what does not must be seen. The
/// partitioner: the Java client's, so that letters of one key meet those of Java services. The size:
/// what a consumer receives at most (`receive.message.max.bytes`), so that the topic's own limit
/// decides and not librdkafka's 1,000,000. No lingering: every letter is waited for.
pub(crate) const LETTERS_DEFAULTS: &[(&[&str], &str)] = &[
    (&["delivery.timeout.ms", "message.timeout.ms"], "60000"),
    (&["partitioner"], "murmur2_random"),
    (&["message.max.bytes"], "100000000"),
    (&["linger.ms", "queue.buffering.max.ms"], "0"),
];

#[cfg(test)]
mod tests {
    use super::*;

    // C088
    #[test]
    fn each_producer_setting_that_could_lose_or_repeat_a_letter_is_named() {
        let good = ("bootstrap.servers", "localhost:9092");
        let fine = [good, ("acks", "all"), ("enable.idempotence", "true")];
        assert_eq!(dead_letter(fine), []);
        let bad = [
            ("enable.idempotence", "false"),
            ("acks", "1"),
            ("topic.acks", "0"),
            ("request.required.acks", "1"),
            ("topic.request.required.acks", "0"),
            ("retries", "0"),
            ("message.send.max.retries", "0"),
            ("max.in.flight", "6"),
            ("max.in.flight.requests.per.connection", "1000000"),
            ("queuing.strategy", "lifo"),
            ("transactional.id", "t"),
            ("delivery.timeout.ms", "0"),
            ("topic.message.timeout.ms", "0"),
            ("delivery.report.only.error", "true"),
            ("allow.auto.create.topics", "true"),
            ("queue.buffering.max.messages", "10"),
        ];
        for (setting, value) in bad {
            let findings = dead_letter([good, (setting, value)]);
            let [finding] = &findings[..] else {
                panic!("{setting}: {findings:?}")
            };
            assert_eq!(finding.setting, setting);
        }
        assert_eq!(
            dead_letter(bad).len(),
            bad.len() + 1,
            "and no broker is named"
        );
    }
}
