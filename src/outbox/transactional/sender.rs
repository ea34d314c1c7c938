//! A producer with what it needs to be made anew.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::outbox::kafka::Producer;
use crate::outbox::patience::{Closing, Patience};
use crate::outbox::round::{self, Ended, Failure, Load};
use crate::outbox::{OutboxError, Outgoing};
use crate::record::{NextOffset, TopicPartition};
use crate::source::ClientConfig;
use crate::source::kafka::Group;
use crate::store::PartitionId;

/// One partition's part of a transaction.
pub(super) struct Part<'a> {
    pub(super) id: PartitionId,
    pub(super) epoch: u32,
    pub(super) name: TopicPartition,
    pub(super) next: NextOffset,
    pub(super) records: &'a [Outgoing],
}

pub(super) struct Sender {
    config: ClientConfig,
    transactional_id: String,
    timeout: Duration,
    group: Group,
    /// `None` where the last one was of no use any more.
    producer: Option<Producer>,
    /// How far each partition was committed under the lease that it has.
    sent: HashMap<PartitionId, NextOffset>,
}

impl Sender {
    /// `None` where the wait was given up.
    pub(super) fn open(
        config: ClientConfig,
        transactional_id: String,
        timeout: Duration,
        group: Group,
        limit: Duration,
        given_up: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, OutboxError> {
        let mut sender = Self {
            config,
            transactional_id,
            timeout,
            group,
            producer: None,
            sent: HashMap::new(),
        };
        sender.producer = sender.make(limit, given_up)?;
        let made = sender.producer.is_some();
        if made {
            tracing::info!(
                transactional_id = sender.transactional_id,
                "the transactional producer is ready"
            );
        }
        Ok(made.then_some(sender))
    }

    fn make(
        &self,
        limit: Duration,
        given_up: &dyn Fn() -> bool,
    ) -> Result<Option<Producer>, OutboxError> {
        let (id, group) = (&self.transactional_id, self.group.clone());
        Producer::open(&self.config, id, self.timeout, group, limit, given_up)
    }

    pub(super) fn transactional_id(&self) -> &str {
        &self.transactional_id
    }

    /// A partition is leased anew: what was known of its position is not known any more.
    pub(super) fn forget(&mut self, id: PartitionId) {
        self.sent.remove(&id);
    }

    /// Commits all parts in one transaction.
    pub(super) fn commit(
        &mut self,
        parts: &[Part<'_>],
        closing: &Closing,
        limit: Duration,
    ) -> Result<Ended, OutboxError> {
        // The group must not be set back: a restore is behind it, and so is what was forgotten.
        let next = |part: &Part<'_>| {
            let floor = self.sent.get(&part.id).copied();
            let floor = floor.max(self.group.committed(&part.name));
            (floor.map_or(part.next, |floor| floor.max(part.next)), floor)
        };
        let floors: Vec<_> = parts.iter().map(next).collect();
        let load = Load {
            records: parts.iter().flat_map(|part| part.records).collect(),
            positions: parts
                .iter()
                .zip(&floors)
                .map(|(part, (next, _))| (part.name.clone(), *next))
                .collect(),
        };
        let moves = floors.iter().any(|(next, floor)| Some(*next) > *floor);
        if load.records.is_empty() && !moves {
            return Ok(Ended::Committed);
        }
        let mut patience = Patience::new(closing, limit);
        let ended = self.try_commit(&load, &mut patience, limit)?;
        if matches!(ended, Ended::Committed) {
            for (part, (next, _)) in parts.iter().zip(floors) {
                self.sent.insert(part.id, next);
            }
        }
        Ok(ended)
    }

    fn try_commit(
        &mut self,
        load: &Load<'_>,
        patience: &mut Patience<'_>,
        limit: Duration,
    ) -> Result<Ended, OutboxError> {
        loop {
            let Some(producer) = &self.producer else {
                let left = patience.left();
                self.producer = self.make(left, &|| patience.left().is_zero())?;
                if self.producer.is_none() {
                    return Err(self.error(Failure::Patience("no new producer".into()), limit));
                }
                continue;
            };
            let begun = Instant::now();
            match round::commit(producer, load, patience) {
                Ok(ended) => return Ok(ended),
                Err(Failure::Fenced { message, open })
                    if open && begun.elapsed() >= self.timeout =>
                {
                    // The fence of the coordinator's clock, not another producer's: this process
                    // was stopped, or the brokers were slow.
                    tracing::warn!(%message, "the transaction took too long; a new producer is made");
                    self.producer = None;
                    if !patience.pause() {
                        return Err(self.error(Failure::Patience(message), limit));
                    }
                }
                Err(failure) => return Err(self.error(failure, limit)),
            }
        }
    }

    fn error(&self, failure: Failure, limit: Duration) -> OutboxError {
        let transactional_id = self.transactional_id.clone();
        match failure {
            Failure::Patience(message) => OutboxError::Patience {
                transactional_id,
                limit_ms: limit.as_millis(),
                message,
            },
            Failure::Unknown(message) => OutboxError::Unknown {
                transactional_id,
                message,
            },
            Failure::Never(error) => error,
            Failure::Fenced { message, .. } => OutboxError::Fenced {
                transactional_id,
                message,
            },
            Failure::Fatal(message) => OutboxError::Fatal {
                transactional_id,
                message,
            },
            Failure::Gone => OutboxError::Ended { transactional_id },
        }
    }
}
