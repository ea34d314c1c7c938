//! What librdkafka calls back: rebalances, errors, log lines.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext, RebalanceProtocol};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::types::RDKafkaRespErr;

use super::batch::{PartitionQueue, Turn};
use super::commit::Commits;
use super::log;
use super::patience::{REQUEST_LIMIT, patiently};
use super::reader::KafkaReader;
use crate::record::{NextOffset, TopicPartition};
use crate::source::{Listener, Offered, Reader, SourceError, Start};

/// The state that callbacks need. They run on the polling thread, inside `poll`.
pub(super) struct Context {
    /// Whether partitions without a committed offset are read from their end.
    latest: bool,
    /// Set right after the consumer is made: callbacks get only a reference, and a partition's
    /// queue must keep its client alive.
    consumer: OnceLock<Weak<BaseConsumer<Context>>>,
    listener: OnceLock<Arc<dyn Listener>>,
    /// The source's; held weakly, since it holds the client that holds this.
    commits: OnceLock<Weak<Commits>>,
    failure: Mutex<Option<SourceError>>,
    /// The group is being left: what it still offers is not taken.
    leaving: AtomicBool,
    /// What is assigned.
    held: Mutex<HashMap<TopicPartition, Held>>,
}

/// A partition that is assigned.
struct Held {
    /// Whose turn it is to read its queue.
    turn: Turn,
    /// What the group had committed when it was.
    committed: Option<NextOffset>,
    /// It is being given back.
    revoking: bool,
}

impl Context {
    pub(super) fn new(latest: bool) -> Self {
        Self {
            latest,
            consumer: OnceLock::new(),
            listener: OnceLock::new(),
            commits: OnceLock::new(),
            failure: Mutex::default(),
            leaving: AtomicBool::new(false),
            held: Mutex::default(),
        }
    }

    pub(super) fn tie(&self, consumer: &Arc<BaseConsumer<Self>>, commits: &Arc<Commits>) {
        // Set once, in the constructor.
        let _ = self.consumer.set(Arc::downgrade(consumer));
        let _ = self.commits.set(Arc::downgrade(commits));
    }

    pub(super) fn listen(&self, listener: Arc<dyn Listener>) -> bool {
        self.listener.set(listener).is_ok()
    }

    /// Nothing is taken any more. A client that is closing answers no questions about offsets.
    pub(super) fn leave(&self) {
        self.leaving.store(true, Ordering::Release);
    }

    /// Whether a partition is assigned.
    pub(super) fn holds(&self, partition: &TopicPartition) -> bool {
        self.is_revoking(partition).is_some()
    }

    /// Whether an assigned partition is being given back.
    pub(super) fn is_revoking(&self, partition: &TopicPartition) -> Option<bool> {
        self.held().get(partition).map(|held| held.revoking)
    }

    /// What the group had committed for an assigned partition, when it was.
    pub(super) fn committed(&self, partition: &TopicPartition) -> Option<NextOffset> {
        self.held().get(partition)?.committed
    }

    fn held(&self) -> MutexGuard<'_, HashMap<TopicPartition, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What went wrong in a callback, which cannot return it.
    pub(super) fn failure(&self) -> Option<SourceError> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn fail(&self, error: SourceError) {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
    }

    fn assign(&self, consumer: &BaseConsumer<Self>, list: &TopicPartitionList) {
        let (Some(listener), Some(owner)) = (
            self.listener.get(),
            self.consumer.get().and_then(Weak::upgrade),
        ) else {
            return self.accept(consumer, &TopicPartitionList::new(), Vec::new());
        };
        if self.leaving.load(Ordering::Acquire) {
            return self.accept(consumer, &TopicPartitionList::new(), Vec::new());
        }
        let offered = match patiently(|| offered(consumer, list, REQUEST_LIMIT)) {
            Ok(offered) => offered,
            Err(error) => {
                // The rebalance must be answered even so: with nothing, and then the consumer ends.
                self.fail(SourceError::client("asking for the group's offsets")(error));
                return self.accept(consumer, &TopicPartitionList::new(), Vec::new());
            }
        };
        let starts = listener.offered(&offered);
        let mut assigned = TopicPartitionList::with_capacity(offered.len());
        let mut readers: Vec<(TopicPartition, Box<dyn Reader>)> = Vec::with_capacity(offered.len());
        for (offered, start) in offered.into_iter().zip(starts) {
            let at = match (start, offered.committed) {
                (Start::At(next), _) | (Start::Committed, Some(next)) => Offset::Offset(next.get()),
                (Start::Oldest, _) => Offset::Beginning,
                (Start::Committed, None) if self.latest => Offset::End,
                // librdkafka applies the reset policy to it.
                (Start::Committed, None) => Offset::Invalid,
            };
            let partition = offered.partition;
            // Before the assign: then no record has reached the main queue.
            let queue = PartitionQueue::take(
                Arc::clone(&owner),
                partition.clone(),
                self.next_turn(&partition, offered.committed),
            );
            let added = assigned.add_partition_offset(partition.topic(), partition.partition(), at);
            match (queue, added) {
                (Some(queue), Ok(())) => {
                    readers.push((partition, Box::new(KafkaReader::new(queue))));
                }
                (_, Err(error)) => self.fail(SourceError::client("assigning")(error)),
                (None, Ok(())) => self.fail(SourceError::Partition {
                    partition,
                    near: String::new(),
                    message: "librdkafka gave no queue for it".to_owned(),
                }),
            }
        }
        self.accept(consumer, &assigned, readers);
    }

    /// Tells librdkafka what is assigned, then the listener.
    fn accept(
        &self,
        consumer: &BaseConsumer<Self>,
        assigned: &TopicPartitionList,
        readers: Vec<(TopicPartition, Box<dyn Reader>)>,
    ) {
        // Once only: a second assign in one callback gives stray resets.
        let done = match consumer.rebalance_protocol() {
            RebalanceProtocol::Cooperative => consumer.incremental_assign(assigned),
            _ => consumer.assign(assigned),
        };
        match (done, self.listener.get()) {
            (Ok(()), Some(listener)) => listener.assigned(readers),
            (Ok(()), None) => {}
            (Err(error), _) => self.fail(SourceError::client("assigning partitions")(error)),
        }
    }

    /// Ends the turn of whoever read the partition before: librdkafka may give the same queue again,
    /// and a late lane would take records from it that nobody handles.
    fn end_turn(&self, partition: &TopicPartition) {
        let held = self.held().remove(partition);
        if let Some(held) = held {
            held.turn.end();
        }
    }

    fn next_turn(&self, partition: &TopicPartition, committed: Option<NextOffset>) -> Turn {
        self.end_turn(partition);
        let turn = Turn::default();
        let held = Held {
            turn: turn.clone(),
            committed,
            revoking: false,
        };
        self.held().insert(partition.clone(), held);
        turn
    }

    fn revoke(&self, consumer: &BaseConsumer<Self>, given_up: &TopicPartitionList) {
        let partitions: Vec<_> = names(given_up);
        let lost = consumer.assignment_lost();
        for partition in &partitions {
            if let Some(held) = self.held().get_mut(partition) {
                held.revoking = true;
            }
        }
        if let Some(listener) = self.listener.get() {
            let positions = listener.revoked(&partitions, lost);
            if !lost && !positions.is_empty() {
                // Before the partitions are given back: the next owner begins where this one
                // ended. A refusal costs it a repeat that its store decides about, no more.
                let commits = self.commits.get().and_then(Weak::upgrade);
                let committed = commits.map(|commits| commits.commit(&positions, REQUEST_LIMIT));
                if let Some(Err(error)) = committed {
                    tracing::warn!(%error, "the group refused positions at a revocation");
                }
            }
        }
        for partition in &partitions {
            self.end_turn(partition);
        }
        let done = match consumer.rebalance_protocol() {
            RebalanceProtocol::Cooperative => consumer.incremental_unassign(given_up),
            _ => consumer.unassign(),
        };
        if let Err(error) = done {
            self.fail(SourceError::client("giving partitions back")(error));
        }
    }
}

fn names(list: &TopicPartitionList) -> Vec<TopicPartition> {
    list.elements()
        .iter()
        .map(|e| TopicPartition::new(e.topic(), e.partition()))
        .collect()
}

/// The offered partitions with what the group has committed for them.
pub(super) fn offered(
    consumer: &BaseConsumer<Context>,
    list: &TopicPartitionList,
    limit: Duration,
) -> KafkaResult<Vec<Offered>> {
    let mut asked = TopicPartitionList::with_capacity(list.count());
    for element in list.elements() {
        asked.add_partition(element.topic(), element.partition());
    }
    if asked.count() == 0 {
        return Ok(Vec::new());
    }
    let answered = consumer.committed_offsets(asked, limit)?;
    answered
        .elements()
        .iter()
        .map(|element| {
            element.error()?;
            let committed = match element.offset() {
                Offset::Offset(next) => NextOffset::new(next),
                _ => None,
            };
            let partition = TopicPartition::new(element.topic(), element.partition());
            Ok(Offered {
                partition,
                committed,
            })
        })
        .collect()
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log::say("librdkafka", level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(%error, reason, "librdkafka reports an error");
    }
}

impl ConsumerContext for Context {
    fn rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        event: RDKafkaRespErr,
        list: &mut TopicPartitionList,
    ) {
        match event {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => self.assign(consumer, list),
            _ => self.revoke(consumer, list),
        }
    }
}
