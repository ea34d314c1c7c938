//! A producer with what it needs to be made anew.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::plan::Plan;
use crate::outbox::kafka::Producer;
use crate::outbox::patience::{Closing, Patience};
use crate::outbox::round::{self, Ended, Failure};
use crate::outbox::{OutboxError, Outgoing};
use crate::record::{NextOffset, TopicPartition};
use crate::source::ClientConfig;
use crate::source::kafka::{Group, Standing};
use crate::store::PartitionId;

const LOOK_PAUSE: Duration = Duration::from_millis(10);

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
        let plan = Plan::new(parts, |part| {
            let sent = self.sent.get(&part.id).copied();
            sent.max(self.group.committed(&part.name))
        });
        if plan.is_nothing() {
            return Ok(Ended::Committed);
        }
        let mut patience = Patience::new(closing, limit);
        let ended = self.try_commit(&plan, &mut patience, limit)?;
        if matches!(ended, Ended::Committed) {
            for (part, (_, next)) in parts.iter().zip(&plan.load.positions) {
                self.sent.insert(part.id, *next);
            }
        }
        Ok(ended)
    }

    fn try_commit(
        &mut self,
        plan: &Plan<'_>,
        patience: &mut Patience<'_>,
        limit: Duration,
    ) -> Result<Ended, OutboxError> {
        loop {
            let Some(producer) = &self.producer else {
                let left = patience.left();
                self.producer = self.make(left, &|| patience.left().is_zero())?;
                if self.producer.is_none() {
                    let failure = Failure::Patience("no new producer came about".to_owned());
                    return Err(self.error(failure, limit));
                }
                continue;
            };
            let (message, asked) = match round::commit(producer, &plan.load, patience) {
                Ok(ended) => return Ok(ended),
                // The fence of the coordinator's clock, not another producer's: this process was
                // stopped, or the brokers were slow.
                Err(Failure::Fenced {
                    message,
                    after,
                    asked,
                }) if after >= self.timeout => (message, asked),
                Err(failure) => return Err(self.error(failure, limit)),
            };
            tracing::warn!("a transaction took too long, and a new producer is made: {message}");
            self.producer = None;
            if !patience.pause() {
                let failure = if asked {
                    Failure::Unknown
                } else {
                    Failure::Patience
                };
                return Err(self.error(failure(message), limit));
            }
            if asked {
                // First the new producer, which ends what the old one has left open.
                self.producer = self.make(patience.left(), &|| patience.left().is_zero())?;
                match self.look(plan, patience) {
                    Some(true) => return Ok(Ended::Committed),
                    Some(false) => {}
                    None => return Err(self.error(Failure::Unknown(message), limit)),
                }
            }
        }
    }

    /// Whether the last transaction was committed, by the positions that it moved; `None` where that
    /// is not known.
    ///
    /// Only a partition that is this member's afterwards can tell, since then nobody else can have
    /// moved it: nothing is leased while a commit is under way.
    fn look(&self, plan: &Plan<'_>, patience: &Patience<'_>) -> Option<bool> {
        self.producer.as_ref()?;
        let end = Instant::now() + round::UNCLEAR_MAX;
        let is = |standing, name: &TopicPartition| self.group.standing(name) == standing;
        let any = |standing| {
            plan.load
                .positions
                .iter()
                .any(|(name, _)| is(standing, name))
        };
        while any(Standing::Unclear) && Instant::now() < end && patience.wait(LOOK_PAUSE) {}
        for (name, next) in plan.moved() {
            if is(Standing::Held, name) {
                let committed = self.group.ask_committed(name);
                if let Err(error) = &committed {
                    tracing::warn!(%error, "what came of a transaction is not known");
                }
                let committed = committed.ok()?;
                if is(Standing::Held, name) {
                    return Some(committed >= Some(*next));
                }
            }
        }
        // Where all are others' now, nothing of it is marked or sent again here.
        (!any(Standing::Held)).then_some(false)
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
