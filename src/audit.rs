//! Settings that would break the promise, found before the first record is read.

mod finding;
mod letters;
mod producer;
mod secret;

use std::collections::BTreeMap;

pub use self::finding::{Beside, Finding, Refused};
pub use self::letters::dead_letter;
pub(crate) use self::letters::{LETTERS_DEFAULTS, PRODUCERS_FORCED};
pub(crate) use self::producer::Settings;
pub use self::producer::{Client, producer};
pub use self::secret::is_secret;
use crate::source::ClientConfig;

pub(crate) struct Rule {
    /// The setting and its aliases.
    pub(crate) names: &'static [&'static str],
    pub(crate) breaks: fn(&str) -> bool,
    pub(crate) reason: &'static str,
    pub(crate) fix: &'static str,
}

/// librdkafka takes several words for a truth value.
pub(crate) fn is_true(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "true" | "t" | "1")
}

const CONSUMER_RULES: &[Rule] = &[
    Rule {
        names: &["enable.auto.commit", "auto.commit.enable"],
        breaks: is_true,
        reason: "a timer would commit offsets of records that are not handled yet, and a crash \
                 would lose them",
        fix: "remove it: offsets are committed behind the marks",
    },
    Rule {
        names: &["enable.auto.offset.store"],
        breaks: is_true,
        reason: "an offset would count as done when its record is handed over, not when it is \
                 handled",
        fix: "remove it",
    },
    Rule {
        names: &["isolation.level"],
        breaks: |value| value == "read_uncommitted",
        reason: "records of aborted transactions would be handled and marked, and the real ones \
                 that follow them dropped as copies",
        fix: "remove it, or set read_committed",
    },
    Rule {
        names: &["offset.store.method"],
        breaks: |value| value == "file",
        reason: "offsets would go to a file, and the group would know nothing of them",
        fix: "remove it",
    },
    Rule {
        names: &["enable.partition.eof"],
        breaks: is_true,
        reason: "librdkafka's batch call takes the end of a partition for a record, and a pause \
                 behind it, as every cooperative rebalance makes one, then skips the next record",
        fix: "remove it",
    },
    Rule {
        names: &["check.crcs"],
        breaks: |value| !is_true(value),
        reason: "a record damaged on its way would be handled",
        fix: "remove it: the check is switched on here",
    },
];

/// A setting that must be there: its name, what is missing without it, what to do.
type Required = (&'static str, &'static str, &'static str);

const BOOTSTRAP: Required = (
    "bootstrap.servers",
    "there is no broker to ask",
    "name at least one as host:port",
);

const GROUP: Required = (
    "group.id",
    "marks and offsets belong to a group",
    "name the group",
);

/// Names under which a required setting may also stand.
fn alias(name: &str) -> Option<&'static str> {
    (name == "bootstrap.servers").then_some("metadata.broker.list")
}

/// Looks through a consumer's settings, by librdkafka's names. Nothing found is an empty list.
///
/// ```
/// let findings = idempotent_consumer::audit::consumer([("enable.auto.commit", "true")]);
/// assert!(findings.iter().any(|finding| finding.setting == "enable.auto.commit"));
/// ```
pub fn consumer<'a>(settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Finding> {
    findings(settings, &[GROUP, BOOTSTRAP], CONSUMER_RULES)
}

/// What of the settings breaks a rule, or is missing.
pub(crate) fn findings<'a>(
    settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    required: &[Required],
    rules: &[Rule],
) -> Vec<Finding> {
    let settings: BTreeMap<_, _> = settings.into_iter().collect();
    let mut findings = Vec::new();
    for &(name, reason, fix) in required {
        let set = |name: &str| settings.get(name).is_some_and(|value| !value.is_empty());
        if !set(name) && !alias(name).is_some_and(set) {
            findings.push(Finding::new(name, None, reason, fix));
        }
    }
    for rule in rules {
        for (&setting, &value) in &settings {
            // librdkafka takes a topic's setting with this prefix too.
            let name = setting.strip_prefix("topic.").unwrap_or(setting);
            if rule.names.contains(&name) && (rule.breaks)(value) {
                let value = Some(value.to_owned());
                findings.push(Finding::new(setting, value, rule.reason, rule.fix));
            }
        }
    }
    findings
}

/// What is set whatever the user left out, and what only where the user said nothing.
pub(crate) const CONSUMER_FORCED: &[(&str, &str)] = &[
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("isolation.level", "read_committed"),
    ("check.crcs", "true"),
    ("enable.partition.eof", "false"),
];

/// `earliest`: an idempotent consumer can afford repeats, not losses. The back-off: librdkafka
/// waits up to a second when its queue is full, which alone cost two thirds of the speed.
pub(crate) const CONSUMER_DEFAULTS: &[(&[&str], &str)] = &[
    (
        &["auto.offset.reset", "topic.auto.offset.reset"],
        "earliest",
    ),
    (&["fetch.queue.backoff.ms"], "10"),
];

/// Sets what a consumer needs, and what the user left out.
pub(crate) fn complete_consumer(config: &mut ClientConfig) {
    for (setting, value) in CONSUMER_FORCED {
        config.set(*setting, *value);
    }
    for (names, value) in CONSUMER_DEFAULTS {
        if let (true, [name, ..]) = (names.iter().all(|name| config.get(name).is_none()), names) {
            config.set(*name, *value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: [(&str, &str); 2] = [("group.id", "g"), ("bootstrap.servers", "localhost:9092")];

    #[test]
    fn a_plain_configuration_passes() {
        assert_eq!(consumer(GOOD), []);
        let latest = [
            ("auto.offset.reset", "latest"),
            ("enable.auto.commit", "false"),
        ];
        assert_eq!(consumer(GOOD.into_iter().chain(latest)), []);
        assert_eq!(
            consumer([("group.id", "g"), ("metadata.broker.list", "h:1")]),
            []
        );
    }

    // C001, C090
    #[test]
    fn each_setting_that_breaks_the_promise_is_named_with_reason_and_fix() {
        let bad = [
            ("enable.auto.commit", "TRUE"),
            ("auto.commit.enable", "1"),
            ("enable.auto.offset.store", "t"),
            ("isolation.level", "read_uncommitted"),
            ("offset.store.method", "file"),
            ("enable.partition.eof", "true"),
            ("check.crcs", "false"),
        ];
        for (setting, value) in bad {
            let findings = consumer(GOOD.into_iter().chain([(setting, value)]));
            let [finding] = &findings[..] else {
                panic!("{setting}: {findings:?}")
            };
            assert_eq!(finding.setting, setting);
            assert!(finding.to_string().contains(value));
        }
        let all = consumer(bad);
        assert_eq!(
            all.len(),
            bad.len() + 2,
            "all at once, and what is missing: {all:?}"
        );
        assert!(Refused(all).to_string().contains("group.id is not set"));
    }
}
