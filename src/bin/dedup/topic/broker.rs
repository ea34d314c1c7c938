//! A look at both topics before the group is joined: what would fail at the first record is said
//! now, with what to do.

use std::time::{Duration, Instant};

use rdkafka::{
    ClientConfig,
    admin::{AdminClient, AdminOptions, ConfigResource, ResourceSpecifier},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer as _},
    error::{KafkaError, RDKafkaErrorCode},
    metadata::MetadataTopic,
};

use super::{
    config::{Config, Partitioning},
    error::Error,
};

/// How long the brokers are tried, and how long one call: none can be interrupted.
const LIMIT: Duration = Duration::from_secs(30);
const SLICE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(200);

/// What the output topic takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Output {
    pub(super) partitions: i32,
    /// `max.message.bytes`, where it could be found out.
    pub(super) batch_bytes_max: Option<usize>,
    /// Compacted: it takes no record without a key.
    pub(super) compacted: bool,
    /// Whether it writes the time of writing over each record's own.
    pub(super) stamps: bool,
}

/// Asks for both topics.
///
/// # Errors
/// Where one is missing, or cannot be used as it is meant, or no broker answers.
pub(super) async fn look(config: &Config) -> Result<Output, Error> {
    let (from, to) = partitions(config).await?;
    if config.partitioning == Partitioning::Same && to < from {
        return Err(Error::Topic {
            topic: config.to.clone(),
            reason: format!(
                "it has {to} partitions, and {} has {from}: with --partition same it needs as many",
                config.from
            ),
        });
    }
    let mut output = Output {
        partitions: to,
        batch_bytes_max: None,
        compacted: false,
        stamps: false,
    };
    match described(config).await {
        Ok(topic) => {
            let value = |name: &str| {
                let entry = topic.entries.iter().find(|entry| entry.name == name)?;
                entry.value.as_deref()
            };
            output.batch_bytes_max = value("max.message.bytes").and_then(|it| it.parse().ok());
            output.compacted = value("cleanup.policy").is_some_and(|it| it.contains("compact"));
            output.stamps = value("message.timestamp.type") == Some("LogAppendTime");
        }
        // Not worth a refusal: whoever may not ask can copy all the same.
        Err(error) => tracing::warn!(
            topic = config.to,
            %error,
            "the topic's settings cannot be read: a record that it does not take stops the program"
        ),
    }
    Ok(output)
}

async fn partitions(config: &Config) -> Result<(i32, i32), Error> {
    let mut client = config.kafka.clone();
    // Asking must not make them.
    client.set("allow.auto.create.topics", "false");
    let client: BaseConsumer = client.create().map_err(|error| refused(&error))?;
    let (from, to) = (config.from.clone(), config.to.clone());
    // The call blocks.
    let asked = tokio::task::spawn_blocking(move || {
        let missing = |topic: &str, reason: String| Error::Topic {
            topic: topic.to_owned(),
            reason,
        };
        let from_count = count(&client, &from)?.ok_or_else(|| {
            missing(
                &from,
                "it does not exist; name the topic to read".to_owned(),
            )
        })?;
        let to_count = count(&client, &to)?.ok_or_else(|| {
            let create = format!(
                "it does not exist, and is not made from here; create it: kafka-topics.sh \
                 --create --topic {to} --partitions {from_count}"
            );
            missing(&to, create)
        })?;
        Ok((from_count, to_count))
    });
    asked.await.unwrap_or_else(|error| {
        Err(Error::System {
            action: "ask for the topics",
            source: error.into(),
        })
    })
}

/// How many partitions a topic has, `None` where there is no such topic.
fn count(client: &BaseConsumer, topic: &str) -> Result<Option<i32>, Error> {
    let end = Instant::now() + LIMIT;
    loop {
        let reason = match client.fetch_metadata(Some(topic), SLICE) {
            Ok(metadata) => {
                let found = metadata.topics().iter().find(|it| it.name() == topic);
                let error = found
                    .and_then(MetadataTopic::error)
                    .map(RDKafkaErrorCode::from);
                match (error, found) {
                    (Some(RDKafkaErrorCode::UnknownTopicOrPartition), _) | (None, None) => {
                        return Ok(None);
                    }
                    (None, Some(topic)) => {
                        return Ok(i32::try_from(topic.partitions().len()).ok());
                    }
                    // A new topic has no leader for a moment.
                    (Some(error), _) => error.to_string(),
                }
            }
            Err(error) => error.to_string(),
        };
        if Instant::now() >= end {
            let topic = topic.to_owned();
            return Err(Error::Brokers { topic, reason });
        }
        std::thread::sleep(PAUSE);
    }
}

async fn described(config: &Config) -> Result<ConfigResource, String> {
    let text = |error: KafkaError| error.to_string();
    let admin: AdminClient<DefaultClientContext> = reaching(&config.kafka)
        .create()
        .map_err(|error| refused(&error).to_string())?;
    let options = AdminOptions::new().request_timeout(Some(LIMIT));
    let topic = [ResourceSpecifier::Topic(&config.to)];
    let answer = admin.describe_configs(topic.iter(), &options).await;
    let first = answer.map_err(text)?.into_iter().next();
    first
        .ok_or_else(|| "no answer".to_owned())?
        .map_err(|error| error.to_string())
}

/// The settings without those of a group member, which another kind of client only complains of.
fn reaching(kafka: &ClientConfig) -> ClientConfig {
    let mut config = kafka.clone();
    for name in ["group.id", "group.instance.id"] {
        config.remove(name);
    }
    config
}

/// The setting is named, its value is not: under a mistyped name it may be a password.
fn refused(error: &KafkaError) -> Error {
    Error::Client(match error {
        KafkaError::ClientConfig(_, what, name, _) => format!("{name}: {what}"),
        other => other.to_string(),
    })
}
