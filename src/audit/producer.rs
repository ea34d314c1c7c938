//! Producers of either client family: what would lose, repeat or reorder their records.

mod known;
mod rules;
mod settings;
#[cfg(test)]
mod tests;

use self::rules::RULES;
pub(crate) use self::settings::Settings;
use super::{BOOTSTRAP, Finding, findings};

/// Whose names and defaults a producer's settings have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Client {
    /// librdkafka 2, and what is built on it: rdkafka here, Confluent's clients for Python, Go, .NET
    /// and JavaScript elsewhere.
    Librdkafka,
    /// Apache Kafka's own client, 3.0 or newer, and what is built on it: Spring, Kafka's console
    /// tools.
    Java,
}

/// Looks through a producer's settings, by its client's names. Nothing found is an empty list.
///
/// What is not set is judged by the client's default: librdkafka's `enable.idempotence` is `false`
/// and is found, the Java client's is `true`. Settings that conflict with each other are in one
/// [`Finding`], each with its value in force. `docs/producer.md` has all rules, and what no setting
/// of a producer can stop.
///
/// ```
/// use idempotent_consumer::audit::{self, Client};
///
/// let settings = [("bootstrap.servers", "localhost:9092"), ("acks", "1")];
/// let findings = audit::producer(Client::Java, settings);
/// assert_eq!(findings[0].setting, "acks");
/// assert_eq!(findings[0].beside[0].to_string(), "enable.idempotence=true (default)");
/// ```
pub fn producer<'a>(
    client: Client,
    settings: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<Finding> {
    let given: Vec<_> = settings.into_iter().collect();
    let mut findings = findings(given.iter().copied(), &[BOOTSTRAP], &[]);
    let settings = Settings::new(client, given);
    findings.extend(settings.unclear());
    let broken = RULES.iter().filter(|rule| rule.is_broken(&settings));
    findings
        .extend(broken.filter_map(|rule| settings.finding(rule.settings, rule.reason, rule.fix)));
    findings
}
