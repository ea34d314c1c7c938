//! The settings of a producer as they hold: what was given, under whichever name, or the default.

use super::Client;
use super::known::{KNOWN, Kind, Known};
use crate::audit::is_true;
use crate::audit::{Beside, Finding};

const NOT_READ: &str = "the client does not take such a value";
const NOT_KNOWN: &str = "it is librdkafka's name, and the Java client goes on without it";
const TWO_NAMES: &str = "both name one setting, and it is left to chance which of them holds";

pub(crate) struct Settings<'a> {
    pub(super) client: Client,
    given: Vec<Given<'a>>,
    /// What the client does not have under the name that was given.
    foreign: Vec<(&'a str, &'a str)>,
}

struct Given<'a> {
    known: &'static Known,
    name: &'a str,
    value: &'a str,
}

impl<'a> Settings<'a> {
    pub(crate) fn new(
        client: Client,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let (mut given, mut foreign) = (Vec::new(), Vec::new());
        for (name, value) in settings {
            // librdkafka takes a topic's setting with this prefix too.
            let plain = name.strip_prefix("topic.").unwrap_or(name);
            let named = |known: &&Known| known.name == plain || known.aliases.contains(&plain);
            let Some(known) = KNOWN.iter().find(named) else {
                continue;
            };
            let (value, is_own) = match client {
                Client::Librdkafka => (value, known.librdkafka.is_some()),
                // It trims what it is given.
                Client::Java => (value.trim(), known.java.is_some() && known.name == name),
            };
            if is_own {
                given.push(Given { known, name, value });
            } else {
                foreign.push((name, value));
            }
        }
        Self {
            client,
            given,
            foreign,
        }
    }

    fn given(&self, name: &str) -> Option<&Given<'a>> {
        self.given.iter().find(|given| given.known.name == name)
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.given(name).is_some()
    }

    /// The value in force, empty where there is none.
    pub(super) fn value(&self, name: &str) -> &'a str {
        let known = || KNOWN.iter().find(|known| known.name == name);
        match self.given(name) {
            Some(given) => given.value,
            None => known()
                .and_then(|known| known.default(self.client))
                .unwrap_or_default(),
        }
    }

    /// `None` for what is neither true nor false.
    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        flag(self.client, self.value(name))
    }

    /// `None` for what is no number. Every whole number that a client takes is exact in it.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        number(self.value(name))
    }

    /// The finding that the first of `names` which was given is at fault beside the others.
    pub(super) fn finding(
        &self,
        names: &[&'static str],
        reason: &'static str,
        fix: &'static str,
    ) -> Option<Finding> {
        let subject = names.iter().find(|name| self.is_set(name));
        let subject = *subject.or(names.first())?;
        let others = names.iter().filter(|name| **name != subject);
        let given = self.given(subject);
        Some(Finding {
            beside: others.map(|name| self.beside(name)).collect(),
            ..Finding::new(
                given.map_or(subject, |given| given.name),
                given.map(|given| given.value.to_owned()),
                reason,
                fix,
            )
        })
    }

    fn beside(&self, name: &str) -> Beside {
        let given = self.given(name);
        Beside {
            setting: given.map_or(name, |given| given.name).to_owned(),
            value: self.value(name).to_owned(),
            is_default: given.is_none(),
        }
    }

    /// What cannot be judged: other names, values that are not read, one setting twice.
    pub(super) fn unclear(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (name, value) in &self.foreign {
            let fix = "give it by the name that Kafka's documentation has, or remove it";
            findings.push(Finding::new(
                *name,
                Some((*value).to_owned()),
                NOT_KNOWN,
                fix,
            ));
        }
        for (at, given) in self.given.iter().enumerate() {
            if let Some(fix) = self.not_read(given) {
                let value = Some(given.value.to_owned());
                findings.push(Finding::new(given.name, value, NOT_READ, fix));
            }
            let before = &self.given[..at];
            let again = |other: &&Given<'_>| {
                other.known.name == given.known.name && other.value != given.value
            };
            if let Some(other) = before.iter().find(again) {
                findings.push(Finding {
                    beside: vec![Beside {
                        setting: other.name.to_owned(),
                        value: other.value.to_owned(),
                        is_default: false,
                    }],
                    ..Finding::new(
                        given.name,
                        Some(given.value.to_owned()),
                        TWO_NAMES,
                        "remove one of them",
                    )
                });
            }
        }
        findings
    }

    /// What to give instead of a value that is not read.
    fn not_read(&self, given: &Given<'_>) -> Option<&'static str> {
        let whole = || given.value.parse::<u32>().is_ok();
        let (is_read, fix) = match given.known.kind {
            Kind::Flag => (
                flag(self.client, given.value).is_some(),
                "set true or false",
            ),
            Kind::Fraction if self.client == Client::Librdkafka => {
                (number(given.value).is_some(), "set a number")
            }
            Kind::Whole | Kind::Fraction => (whole(), "set a whole number"),
            Kind::Acks => (is_all(given.value) || whole(), "set all"),
            Kind::Text => (true, ""),
        };
        (!is_read).then_some(fix)
    }
}

/// Whether the value of `acks` is that of all in-sync replicas.
pub(super) fn is_all(value: &str) -> bool {
    matches!(value, "all" | "-1")
}

fn number(value: &str) -> Option<f64> {
    let number: f64 = value.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

fn flag(client: Client, value: &str) -> Option<bool> {
    let word = value.to_ascii_lowercase();
    match client {
        Client::Librdkafka if is_true(value) => Some(true),
        Client::Librdkafka if matches!(word.as_str(), "false" | "f" | "0") => Some(false),
        Client::Java => word.parse().ok(),
        Client::Librdkafka => None,
    }
}
