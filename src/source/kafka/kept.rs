//! How long the brokers keep what they have.

use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, ConfigResource, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::KafkaError;

use super::ClientConfig;

/// What the brokers say of how long they keep things, as far as they do.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Topics by their names, with their `retention.ms`: negative for ever.
    pub(crate) topics: Vec<(String, i64)>,
    /// `offsets.retention.minutes`.
    pub(crate) offsets_minutes: Option<i64>,
}

/// Asks the brokers that `config` reaches. A pattern names no topic, and is passed over.
pub(crate) async fn kept(
    config: &ClientConfig,
    topics: &[String],
    limit: Duration,
) -> Result<Kept, KafkaError> {
    let admin: AdminClient<DefaultClientContext> = config.create()?;
    let metadata = admin.inner().fetch_metadata(None, limit)?;
    let options = AdminOptions::new().request_timeout(Some(limit));
    let mut asked: Vec<_> = topics
        .iter()
        .filter(|topic| !topic.starts_with('^'))
        .map(|topic| ResourceSpecifier::Topic(topic))
        .collect();
    let named: Vec<_> = topics
        .iter()
        .filter(|topic| !topic.starts_with('^'))
        .collect();
    let broker = metadata
        .brokers()
        .first()
        .map(rdkafka::metadata::MetadataBroker::id);
    asked.extend(broker.map(ResourceSpecifier::Broker));
    let answers = admin.describe_configs(asked.iter(), &options).await?;
    let mut kept = Kept::default();
    for (at, answer) in answers.into_iter().enumerate() {
        let Ok(resource) = answer else { continue };
        match named.get(at) {
            Some(topic) => {
                let ms = number(&resource, "retention.ms");
                kept.topics.extend(ms.map(|ms| ((*topic).clone(), ms)));
            }
            None => kept.offsets_minutes = number(&resource, "offsets.retention.minutes"),
        }
    }
    Ok(kept)
}

fn number(resource: &ConfigResource, name: &str) -> Option<i64> {
    resource.get(name)?.value.as_ref()?.parse().ok()
}
