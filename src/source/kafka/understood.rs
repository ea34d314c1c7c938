//! Settings that librdkafka does not take.

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

use crate::audit::Finding;

/// In place of a value that nothing is known of: under a mistyped name it may be a password.
const NOT_SHOWN: &str = "(not shown)";

/// What librdkafka does not know, or not with its value, each setting by itself.
pub(crate) fn not_understood(config: &ClientConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Its map has a word in place of passwords, so the value is asked for.
    for (name, shown) in config.config_map() {
        let mut alone = ClientConfig::new();
        alone.set(name, config.get(name).unwrap_or(shown));
        if let Err(KafkaError::ClientConfig(result, ..)) = alone.create_native_config() {
            let shown = match result {
                RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN => NOT_SHOWN,
                _ => shown,
            };
            findings.push(Finding::new(
                name,
                Some(shown.to_owned()),
                "librdkafka does not take it for a producer",
                "look it up in librdkafka's CONFIGURATION.md; those of ssl and sasl need the \
                 features of this crate that have their names",
            ));
        }
    }
    findings
}
