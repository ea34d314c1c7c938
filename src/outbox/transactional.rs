//! A store whose commits are Kafka transactions.

mod plan;
mod sender;
mod store;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::sender::Sender;
use super::patience::Closing;
use super::settings::{Choices, PATIENCE_DEFAULT, TIMEOUT_DEFAULT};
use super::{OutboxError, Outlet};
use crate::audit::Finding;
use crate::record::TopicPartition;
use crate::source::ClientConfig;
use crate::source::kafka::Group;
use crate::store::{PartitionId, Store};

/// A store around another, for handlers that answer records with records: what they
/// [send](crate::Outbox::send) is committed in one Kafka transaction with the positions of what they
/// answer, and only then marked in the store underneath.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use idempotent_consumer::store::MemoryStore;
/// use idempotent_consumer::{ClientConfig, IdempotentConsumer, Outgoing, Transactional, key};
/// # let (config, shutdown) = (ClientConfig::new(), Default::default());
/// let consumer = IdempotentConsumer::builder(config)
///     .topics(["payments"])
///     .key(key::header("payment-id"))
///     .build(Transactional::over(MemoryStore::new()))?;
/// consumer.run(async |payment, outbox| {
///     outbox.send(Outgoing::copy_of(payment, "receipts"));
///     Ok(())
/// }, shutdown).await?;
/// # Ok(())
/// # }
/// ```
///
/// Readers with `isolation.level=read_committed` find each answer once: never twice, never none,
/// whatever dies when. Others see what was aborted, too.
///
/// Ordering must be [`Partition`](crate::Ordering::Partition) and restoring
/// [`FromSource`](crate::Restore::FromSource), as they are by default: a crash between the
/// transaction and the marks leaves the store behind its group, and what was sent is then read for
/// its keys. Results that were [recorded](crate::Outbox::record) are not found there: copies of those
/// records are answered without one.
///
/// [Dead letters](crate::DeadLetter) are written by a producer of their own, outside of the
/// transactions, as anywhere else.
///
/// One serves one consumer at a time. Its producer takes from the consumer's settings how the
/// brokers are reached; `docs/transactions.md` says more, and what each failure leads to.
pub struct Transactional<S> {
    inner: S,
    choices: Choices,
    /// Of a store that has no id itself.
    random_id: Result<String, String>,
    closing: Closing,
    /// The partitions that are leased, by their numbers in the store.
    names: Mutex<HashMap<PartitionId, TopicPartition>>,
    /// Sent, and refused by the store underneath because of another of the same transaction.
    unmarked: Mutex<Vec<PartitionId>>,
    link: Mutex<Link>,
}

/// The way out.
#[derive(Default)]
enum Link {
    /// No consumer runs.
    #[default]
    Down,
    Up(Box<Sender>),
    /// Nothing is sent any more, since nobody knows what came of the last attempt.
    Broken {
        transactional_id: String,
        cause: String,
    },
}

impl Link {
    /// Nothing is sent any more. The first cause is the one that is told.
    fn break_off(&mut self, cause: String) {
        if let Self::Up(sender) = self {
            let transactional_id = sender.transactional_id().to_owned();
            *self = Self::Broken {
                transactional_id,
                cause,
            };
        }
    }
}

impl<S: Store> Transactional<S> {
    /// Around a store, with a `transactional.id` of the group and that store's own id: whoever opens
    /// the same store again fences the producer that had it before, and no other. A store without an
    /// id ([`MemoryStore`](crate::store::MemoryStore)) gets a random one.
    #[must_use]
    pub fn over(store: S) -> Self {
        let mut bytes = [0; 16];
        let random_id = getrandom::fill(&mut bytes)
            .map(|()| format!("{:032x}", u128::from_be_bytes(bytes)))
            .map_err(|error| error.to_string());
        Self {
            inner: store,
            choices: Choices {
                own: ClientConfig::new(),
                transactional_id: None,
                timeout: TIMEOUT_DEFAULT,
                patience: PATIENCE_DEFAULT,
            },
            random_id,
            closing: Closing::default(),
            names: Mutex::default(),
            unmarked: Mutex::default(),
            link: Mutex::default(),
        }
    }

    /// Settings of the producer, in librdkafka's names, beside those that say how the consumer
    /// reaches its brokers. They are looked through at [`build`](crate::Builder::build).
    #[must_use]
    pub fn config(mut self, config: ClientConfig) -> Self {
        self.choices.own = config;
        self
    }

    /// Another `transactional.id`. It must be the same whenever this store is opened again, and no
    /// other producer's of the cluster: two with one id shut each other out.
    #[must_use]
    pub fn transactional_id(mut self, id: impl Into<String>) -> Self {
        self.choices.transactional_id = Some(id.into());
        self
    }

    /// `transaction.timeout.ms`: after how long the brokers end a transaction that its process has
    /// left open; 10 s by default, from 1 s to 30 s. They look every 10 s
    /// (`transaction.abort.timed.out.transaction.cleanup.interval.ms`), so that a process that was
    /// killed holds up the readers of its topics, and whoever takes its partitions over, for that much
    /// longer at most. Opening its store again ends it at once.
    #[must_use]
    pub fn transaction_timeout(mut self, timeout: Duration) -> Self {
        self.choices.timeout = timeout;
        self
    }

    /// How long a transaction is tried again before the consumer stops: 2 minutes by default. A
    /// rebalance may wait for it, so it should stay below `max.poll.interval.ms`.
    #[must_use]
    pub fn patience(mut self, limit: Duration) -> Self {
        self.choices.patience = limit;
        self
    }

    /// The store underneath.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unmarked(&self) -> MutexGuard<'_, Vec<PartitionId>> {
        self.unmarked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn names(&self) -> MutexGuard<'_, HashMap<PartitionId, TopicPartition>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn id_for(&self, config: &ClientConfig) -> Result<String, OutboxError> {
        if let Some(id) = &self.choices.transactional_id {
            return Ok(id.clone());
        }
        let group = config.get("group.id").unwrap_or_default();
        let own = self.inner.id().map_or_else(|| self.random_id.clone(), Ok);
        match own {
            Ok(own) => Ok(format!("{group}-{own}")),
            Err(message) => Err(OutboxError::Start {
                transactional_id: group.to_owned(),
                message: format!("there is no random number for its id: {message}"),
            }),
        }
    }
}

impl<S: Store> Outlet for Transactional<S> {
    fn findings(&self, consumer: &ClientConfig) -> Vec<Finding> {
        self.choices.findings(consumer)
    }

    fn open(
        &self,
        config: &ClientConfig,
        group: Group,
        limit: Duration,
        given_up: &dyn Fn() -> bool,
    ) -> Result<(), OutboxError> {
        let transactional_id = self.id_for(config)?;
        let mut link = self.link();
        if matches!(*link, Link::Up(_)) {
            return Err(OutboxError::InUse { transactional_id });
        }
        self.closing.reopen();
        let config = self.choices.effective(config, &transactional_id);
        let timeout = self.choices.timeout;
        let sender = Sender::open(config, transactional_id, timeout, group, limit, given_up)?;
        *link = sender.map_or(Link::Down, |sender| Link::Up(Box::new(sender)));
        Ok(())
    }

    fn close(&self, limit: Duration) {
        // Before the lock, which a commit may hold.
        self.closing.close(Instant::now() + limit);
        let sender = std::mem::take(&mut *self.link());
        drop(sender);
    }
}
