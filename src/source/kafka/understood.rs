//! Settings that librdkafka does not take.

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

use crate::audit::{self, Finding};

/// In place of a value that is a secret, or that nothing is known of: under a mistyped name it may
/// be a password.
const NOT_SHOWN: &str = "(not shown)";

/// What librdkafka does not know, or not with its value, each setting by itself.
pub(crate) fn not_understood(config: &ClientConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Its map has a word in place of passwords, so the value is asked for.
    for (name, shown) in config.config_map() {
        let mut alone = ClientConfig::new();
        alone.set(name, config.get(name).unwrap_or(shown));
        if let Err(KafkaError::ClientConfig(result, ..)) = alone.create_native_config() {
            findings.push(Finding::new(
                name,
                Some(shown_of(result, name, shown).to_owned()),
                "librdkafka does not take it for a producer",
                "look it up in librdkafka's CONFIGURATION.md; those of ssl and sasl need the \
                 features of this crate that have their names",
            ));
        }
    }
    findings
}

/// The error of a client that was not made, without a value that must not be shown.
pub(crate) fn without_secrets(error: KafkaError) -> KafkaError {
    match error {
        KafkaError::ClientConfig(result, what, name, value) => {
            let shown = shown_of(result, &name, &value).to_owned();
            KafkaError::ClientConfig(result, what, name, shown)
        }
        other => other,
    }
}

fn shown_of<'a>(result: RDKafkaConfRes, name: &str, value: &'a str) -> &'a str {
    let unknown = result == RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN;
    if unknown || audit::is_secret(name) {
        return NOT_SHOWN;
    }
    value
}

#[cfg(test)]
mod tests {
    use rdkafka::consumer::BaseConsumer;

    use super::*;

    #[test]
    fn no_error_shows_a_refused_value_that_may_be_a_secret() {
        // Known, and refused with any build: no key, or no ssl. Unknown. Known, and no secret.
        for (name, value, shown) in [
            ("ssl.key.pem", "hunter2", false),
            ("sasl.pasword", "hunter2", false),
            ("session.timeout.ms", "soon", true),
        ] {
            let mut config = ClientConfig::new();
            config.set(name, value);
            let mut said: Vec<_> = not_understood(&config)
                .iter()
                .map(|finding| format!("{finding} {finding:?}"))
                .collect();
            let made = config.create::<BaseConsumer>().map_err(without_secrets);
            said.extend(made.err().map(|error| format!("{error} {error:?}")));
            assert_eq!(said.len(), 2, "{name}: {said:?}");
            for said in said {
                assert!(said.contains(name), "{said}");
                assert_eq!(said.contains(value), shown, "{said}");
            }
        }
    }
}
