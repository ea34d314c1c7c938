//! What librdkafka logs, as events of `tracing`.

use rdkafka::config::RDKafkaLogLevel;

/// `who` says which of the clients it is.
pub(crate) fn say(who: &str, level: RDKafkaLogLevel, facility: &str, message: &str) {
    match level {
        RDKafkaLogLevel::Emerg
        | RDKafkaLogLevel::Alert
        | RDKafkaLogLevel::Critical
        | RDKafkaLogLevel::Error => tracing::error!(facility, "{who}: {message}"),
        RDKafkaLogLevel::Warning => tracing::warn!(facility, "{who}: {message}"),
        RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => {
            tracing::info!(facility, "{who}: {message}");
        }
        RDKafkaLogLevel::Debug => tracing::debug!(facility, "{who}: {message}"),
    }
}
