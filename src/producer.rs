//! Producers whose retries leave one copy, in order, on all in-sync replicas.

use crate::audit::{self, Client, Refused, Settings};
use crate::source::ClientConfig;
use crate::source::kafka::not_understood;

/// What is set where nothing is. Each is also what librdkafka would choose beside the first; they
/// are written down so that whoever prints the configuration sees what holds.
const GUARD: [(&str, &str); 4] = [
    ("enable.idempotence", "true"),
    ("acks", "all"),
    ("retries", "2147483647"),
    ("max.in.flight.requests.per.connection", "5"),
];

/// Gives the configuration of a producer back, guarded: what is missing is set
/// (`enable.idempotence=true`, `acks=all`, `retries=2147483647`,
/// `max.in.flight.requests.per.connection=5`), and nothing that was set is changed. Make the
/// producer of it, of any type that rdkafka has.
///
/// The broker then writes one copy of a request that is sent again, in its order. It cannot know
/// the copies that another session makes, an application that sends twice, or one that sends again
/// after a time-out that was a success: those are what the consumer of this crate is for.
/// `docs/producer.md` has each of them with a way to see it.
///
/// Nothing is connected. `transactional.id` may be set.
///
/// ```
/// use idempotent_consumer::{ClientConfig, producer};
///
/// let mut config = ClientConfig::new();
/// config.set("bootstrap.servers", "localhost:9092");
/// let guarded = producer::guarded(config.clone())?;
/// assert_eq!(guarded.get("enable.idempotence"), Some("true"));
///
/// config.set("acks", "1").set("max.in.flight", "10");
/// let refused = producer::guarded(config).unwrap_err();
/// assert_eq!(refused.0.len(), 2, "every conflict at once: {refused}");
/// # Ok::<(), idempotent_consumer::audit::Refused>(())
/// ```
///
/// # Errors
/// Every conflict at once: what [`audit::producer`] finds, and each setting that librdkafka does not
/// take.
pub fn guarded(mut config: ClientConfig) -> Result<ClientConfig, Refused> {
    let missing = {
        let given = Settings::new(Client::Librdkafka, config.config_map());
        GUARD.map(|(name, value)| (!given.is_set(name)).then_some((name, value)))
    };
    for (name, value) in missing.into_iter().flatten() {
        config.set(name, value);
    }
    let mut findings = audit::producer(Client::Librdkafka, config.config_map());
    for finding in not_understood(&config) {
        if !findings
            .iter()
            .any(|known| known.setting == finding.setting)
        {
            findings.push(finding);
        }
    }
    if findings.is_empty() {
        Ok(config)
    } else {
        Err(Refused(findings))
    }
}
