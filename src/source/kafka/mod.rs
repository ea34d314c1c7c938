//! Kafka, through rdkafka.
//!
//! The main queue carries events alone and is polled by one thread that does nothing else, so
//! that rebalances are served at once and the membership lasts whatever the handlers do. Records
//! come from the partitions' own queues.

#[cfg(feature = "testkit")]
mod alone;
mod batch;
mod commit;
mod context;
mod group;
mod kept;
pub(crate) mod log;
mod membership;
mod patience;
mod reader;
mod understood;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message as _;
use rdkafka::topic_partition_list::TopicPartitionList;

#[cfg(feature = "testkit")]
pub use self::alone::read_and_drop;
use self::commit::Commits;
use self::context::Context;
pub(crate) use self::group::{Group, Standing};
pub(crate) use self::kept::{Kept, kept};
use self::patience::REQUEST_LIMIT;
pub(crate) use self::understood::not_understood;
use self::understood::without_secrets;
use super::{Listener, Source, SourceError};
use crate::engine::Committed;
use crate::record::TopicPartition;

/// How late it is noticed, before the group is joined, that nobody waits for it any more.
const CONNECT_SLICE: Duration = Duration::from_secs(1);
const CONNECT_PAUSE: Duration = Duration::from_millis(200);
/// How long leaving the group may take at least.
const LEAVE_MIN: Duration = Duration::from_secs(2);
/// How long one answer to the last commit is waited for.
const COMMIT_LIMIT: Duration = Duration::from_secs(3);
/// How often it is asked whether a client that is left behind has other users still.
const CLOSE_WAIT: Duration = Duration::from_millis(20);

/// A member of a consumer group.
pub(crate) struct KafkaSource {
    // Before the client that its queue belongs to.
    commits: Arc<Commits>,
    consumer: Arc<BaseConsumer<Context>>,
    topics: Vec<String>,
    /// Why the last positions could not even be sent.
    unsent: Option<SourceError>,
}

impl KafkaSource {
    /// Makes the client; the group is joined by `join`. The configuration has been audited.
    pub(crate) fn new(config: &ClientConfig, topics: Vec<String>) -> Result<Self, SourceError> {
        let latest = begins_at_latest(config);
        let mut config = config.clone();
        if latest {
            // librdkafka would apply it to a known position as well, where records were deleted
            // from under it, and pass over those that are left.
            for name in RESET {
                config.remove(name);
            }
            config.set(RESET[0], "earliest");
        }
        let consumer: BaseConsumer<Context> = config
            .create_with_context(Context::new(latest))
            .map_err(without_secrets)
            .map_err(SourceError::client("making the Kafka client"))?;
        let consumer = Arc::new(consumer);
        let commits = Commits::new(Arc::clone(&consumer))
            .map_err(SourceError::client("making the Kafka client"))?;
        let commits = Arc::new(commits);
        consumer.client().context().tie(&consumer, &commits);
        Ok(Self {
            commits,
            consumer,
            topics,
            unsent: None,
        })
    }

    /// What is subscribed to.
    pub(crate) fn topics(&self) -> &[String] {
        &self.topics
    }

    /// The membership, for whoever commits positions in transactions.
    pub(crate) fn group(&self) -> Group {
        Group::new(&self.consumer)
    }

    fn context(&self) -> &Context {
        self.consumer.client().context()
    }

    /// Those positions that the group has not reached.
    fn ahead_of_group(&self, positions: Vec<Committed>) -> Result<Vec<Committed>, SourceError> {
        let mut asked = TopicPartitionList::with_capacity(positions.len());
        for Committed { partition, .. } in &positions {
            asked.add_partition(partition.topic(), partition.partition());
        }
        let group: HashMap<_, _> = context::offered(&self.consumer, &asked, REQUEST_LIMIT)
            .map_err(SourceError::client("asking for the group's offsets"))?
            .into_iter()
            .map(|offered| (offered.partition, offered.committed))
            .collect();
        let reached = |of: &Committed| group.get(&of.partition).copied().flatten() >= Some(of.next);
        Ok(positions.into_iter().filter(|of| !reached(of)).collect())
    }

    /// Commits positions, again where it is refused, until `end`.
    fn commit_last(&mut self, positions: &[Committed], end: Instant) -> Result<(), SourceError> {
        let mut pause = Duration::from_millis(50);
        let mut positions = positions.to_vec();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            // Not all of it at once: an answer may wait for a rebalance, which waits for a poll.
            let left = left.min(COMMIT_LIMIT).max(pause);
            match self.commits.commit(&positions, left) {
                Err(error) if Instant::now() + pause >= end => {
                    return Err(SourceError::client("committing the last offsets")(error));
                }
                Err(error) => {
                    tracing::warn!(%error, "the last commit was refused; it is sent again");
                    // Polling is also the pause: a rebalance may have to be served first.
                    self.poll(pause)?;
                    pause *= 2;
                    // Taken away meanwhile: what could be committed of them was, then.
                    positions.retain(|of| self.context().holds(&of.partition));
                    if positions.is_empty() {
                        return Ok(());
                    }
                    // Others may have gone further in the meantime: the group must not step back.
                    positions = self.ahead_of_group(positions)?;
                }
                Ok(()) => return Ok(()),
            }
        }
    }

    /// What an error on the main queue means: some end the consumer, the rest is the client's to
    /// mend and only worth a line.
    fn judge(&self, error: &KafkaError) -> Result<(), SourceError> {
        if let Some((code, message)) = self.consumer.client().fatal_error() {
            return Err(fatal(code, message));
        }
        match error.rdkafka_error_code() {
            Some(code @ RDKafkaErrorCode::FencedInstanceId) => Err(fatal(code, error.to_string())),
            // The group may still get the topic; but nobody would notice a misspelt name.
            Some(RDKafkaErrorCode::UnknownTopicOrPartition) => {
                tracing::warn!(%error, topics = ?self.topics, "a subscribed topic does not exist");
                Ok(())
            }
            Some(
                RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::GroupAuthorizationFailed
                | RDKafkaErrorCode::SaslAuthenticationFailed
                | RDKafkaErrorCode::UnsupportedVersion,
            ) => Err(SourceError::Fatal {
                message: error.to_string(),
                remedy: "look at the group's and the topics' access rights, and at the broker's \
                         version"
                    .to_owned(),
            }),
            _ => {
                tracing::warn!(%error, "the Kafka client reports an error");
                Ok(())
            }
        }
    }
}

fn fatal(code: RDKafkaErrorCode, message: String) -> SourceError {
    match code {
        RDKafkaErrorCode::FencedInstanceId => SourceError::InstanceFenced { message },
        _ => SourceError::Fatal {
            message,
            remedy: "start again once its cause is mended".to_owned(),
        },
    }
}

/// A failure that came at once would be asked for again at once.
fn pause_unless_waited(error: &KafkaError) {
    if error.rdkafka_error_code() != Some(RDKafkaErrorCode::OperationTimedOut) {
        std::thread::sleep(CONNECT_PAUSE);
    }
}

/// The reset policy's name, and its alias.
const RESET: [&str; 2] = ["auto.offset.reset", "topic.auto.offset.reset"];

/// Whether a group that has committed nothing begins behind the newest record.
fn begins_at_latest(config: &ClientConfig) -> bool {
    let policy = RESET.iter().find_map(|name| config.get(name));
    matches!(policy, Some("latest" | "largest" | "end"))
}

impl Drop for KafkaSource {
    /// rdkafka closes an open client in its drop and waits for the brokers without a limit: for
    /// ever where they are gone. Whoever drops this must not wait with it.
    fn drop(&mut self) {
        if self.consumer.closed() {
            return;
        }
        let (commits, consumer) = (Arc::clone(&self.commits), Arc::clone(&self.consumer));
        let closing = std::thread::Builder::new()
            .name("ic-close".to_owned())
            .spawn(move || {
                drop(commits);
                // The last reference: readers of late lanes and this source's own are gone, or
                // theirs is the last and closes it where it is no hindrance.
                while Arc::strong_count(&consumer) > 1 {
                    std::thread::sleep(CLOSE_WAIT);
                }
            });
        if let Err(error) = closing {
            tracing::warn!(%error, "no thread to close the Kafka client on; it is closed here");
        }
    }
}

impl Source for KafkaSource {
    fn join(&mut self, listener: Arc<dyn Listener>) -> Result<(), SourceError> {
        self.context().listen(listener);
        let topics: Vec<&str> = self.topics.iter().map(String::as_str).collect();
        self.consumer
            .subscribe(&topics)
            .map_err(SourceError::client("subscribing"))
    }

    fn poll(&mut self, wait: Duration) -> Result<(), SourceError> {
        match self.consumer.poll(wait) {
            None => {}
            Some(Err(error)) => self.judge(&error)?,
            Some(Ok(message)) => {
                // Every partition's queue was cut off before it was assigned. A record here would
                // be lost if it were dropped, so the consumer ends with its offset not moved.
                return Err(SourceError::Partition {
                    partition: TopicPartition::new(message.topic(), message.partition()),
                    near: format!(" at offset {}", message.offset()),
                    message: "a record came past its partition's queue".to_owned(),
                });
            }
        }
        self.context().failure().map_or(Ok(()), Err)
    }

    fn commit(&mut self, positions: &[Committed]) {
        // An answer too: whoever waits for one would never send again.
        self.unsent = self
            .commits
            .send(positions)
            .err()
            .map(SourceError::client("sending offsets"));
    }

    fn commit_answers(&mut self) -> Vec<Result<Vec<Committed>, SourceError>> {
        let came = self.commits.answer(Duration::ZERO);
        let came = came.map(|answer| answer.map_err(SourceError::client("committing offsets")));
        self.unsent
            .take()
            .map(Err)
            .into_iter()
            .chain(came)
            .collect()
    }

    fn leave(&mut self, positions: &[Committed], limit: Duration) -> Result<(), SourceError> {
        let end = Instant::now() + limit;
        self.context().leave();
        let committed = self.commit_last(positions, end);
        // Whatever the commit said: a client that was not closed is closed by its drop, which
        // waits for the brokers without a limit.
        self.consumer
            .close_queue()
            .map_err(SourceError::client("leaving the group"))?;
        // Whatever the limit, some time: an unfinished leave costs the group a session time-out.
        let end = end.max(Instant::now() + LEAVE_MIN);
        let mut served = Ok(());
        while !self.consumer.closed() {
            if Instant::now() >= end {
                tracing::warn!("the group was not left in time; its session time-out will tell it");
                break;
            }
            // An error is no reason to stop: rebalances must be served until the client is closed.
            if let Err(error) = self.poll(Duration::from_millis(20)) {
                served = served.and(Err(error));
            }
        }
        committed.and(served)
    }

    fn cluster_id(
        &self,
        limit: Duration,
        given_up: &dyn Fn() -> bool,
    ) -> Result<Option<String>, SourceError> {
        let end = Instant::now() + limit;
        let topic = self.topics.first().map(String::as_str);
        // Asked for first: the id comes with any metadata, and waiting for it alone connects only
        // with librdkafka's next tick, up to a second later. And no answer is not the answer "none".
        //
        // In slices: the calls cannot be interrupted.
        loop {
            match self.consumer.fetch_metadata(topic, CONNECT_SLICE) {
                Ok(_) => break,
                Err(_) if given_up() => return Ok(None),
                Err(error) if Instant::now() >= end => {
                    return Err(SourceError::client("reaching the cluster")(error));
                }
                Err(error) => pause_unless_waited(&error),
            }
        }
        while !given_up() {
            let id = self.consumer.client().fetch_cluster_id(CONNECT_SLICE);
            if id.is_some() || Instant::now() >= end {
                return Ok(id);
            }
        }
        Ok(None)
    }
}
