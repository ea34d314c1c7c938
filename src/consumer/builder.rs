//! What can be chosen of a consumer, and what of it is refused.

mod findings;
mod limits;
mod retention;

use std::sync::Arc;
use std::time::Duration;

use super::{EffectStore, IdempotentConsumer, Membership};
use crate::audit;
use crate::dead_letter::DeadLetter;
use crate::engine::Engine;
use crate::error::Error;
use crate::handler::Delivery;
use crate::key::{MissingKey, Recipe, Scope};
use crate::pipeline::{
    AssignmentHook, CONCURRENCY_DEFAULT, CopyHook, Mismatch, Ordering, Restore, RestoreHook,
    RestoreProgress, Settings,
};
use crate::record::TopicPartition;
use crate::retention::Retention;
use crate::retry::RetryPolicy;
use crate::source::kafka::ClientConfig;
use crate::store::Owner;

/// The longest time that can be chosen.
const DURATION_MAX: Duration = Duration::from_secs(3600);
/// The most records that can be handled at once.
const CONCURRENCY_MAX: usize = 1_000_000;
const COMMIT_WITHIN: Duration = Duration::from_millis(10);
const TRANSACTION_WITHIN: Duration = Duration::from_millis(100);

/// What [`IdempotentConsumer::builder`] gives: first the topics and the key, then the choices that
/// have defaults, then the store.
#[must_use]
pub struct Builder {
    config: ClientConfig,
    topics: Vec<String>,
    recipe: Option<Recipe>,
    scope: Scope,
    missing_key: MissingKey,
    mismatch: Mismatch,
    restore: Restore,
    retry: RetryPolicy,
    retention: Retention,
    on_duplicate: Option<Arc<CopyHook>>,
    on_restore: Option<Arc<RestoreHook>>,
    on_assignment: Option<Arc<AssignmentHook>>,
    dead_letter: Option<DeadLetter>,
    replay_from: Vec<String>,
    ordering: Ordering,
    concurrency_max: Option<usize>,
    uncommitted_records_max: Option<usize>,
    unsynced_records_max: Option<usize>,
    commit_within: Option<Duration>,
    offset_interval: Duration,
    drain_limit: Option<Duration>,
}

impl Builder {
    pub(super) fn new(config: ClientConfig) -> Self {
        Self {
            config,
            topics: Vec::new(),
            recipe: None,
            scope: Scope::default(),
            missing_key: MissingKey::default(),
            mismatch: Mismatch::default(),
            restore: Restore::default(),
            retry: RetryPolicy::default(),
            retention: Retention::default(),
            on_duplicate: None,
            on_restore: None,
            on_assignment: None,
            dead_letter: None,
            replay_from: Vec::new(),
            ordering: Ordering::default(),
            concurrency_max: None,
            uncommitted_records_max: None,
            unsynced_records_max: None,
            commit_within: None,
            offset_interval: Duration::from_secs(1),
            drain_limit: None,
        }
    }

    /// The topics to subscribe to. At least one; a name that starts with `^` is a pattern.
    pub fn topics<T: Into<String>>(mut self, topics: impl IntoIterator<Item = T>) -> Self {
        self.topics = topics.into_iter().map(Into::into).collect();
        self
    }

    /// Where a record carries its identity. There is no default.
    pub fn key(mut self, recipe: Recipe) -> Self {
        self.recipe = Some(recipe);
        self
    }

    /// How far a key reaches: [`Scope::Topic`] by default.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// What to do with records that carry no key: [`MissingKey::Reject`] by default.
    pub fn on_missing_key(mut self, policy: MissingKey) -> Self {
        self.missing_key = policy;
        self
    }

    /// What to do with a known key that comes with another value: [`Mismatch::DeadLetter`] by
    /// default, which stops where there are no [dead letters](Self::dead_letter).
    pub fn on_mismatch(mut self, policy: Mismatch) -> Self {
        self.mismatch = policy;
        self
    }

    /// What to do where the group is ahead of the store: [`Restore::FromSource`] by default.
    pub fn restore(mut self, policy: Restore) -> Self {
        self.restore = policy;
        self
    }

    /// How a failing record is tried again: the [`RetryPolicy`]'s default by default.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// How long keys are remembered: for ever by default. See [`Retention`] for what time is, and
    /// for what happens at a cap.
    ///
    /// What has expired is dropped by a thread of its own, once a second, nothing above what the
    /// group has committed. At the start the topics' `retention.ms`, the brokers'
    /// `offsets.retention.minutes` and the time that [retries](Self::retry) take are compared with
    /// it, as far as they are known: what is longer brings records back whose keys have expired, and
    /// is warned of.
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// Where records go that cannot be handled: whose handler [rejected](crate::HandlerError::Reject)
    /// them or failed at every attempt, that carry [no key](MissingKey::Reject), or have a known key
    /// and [another value](Mismatch::DeadLetter). Without it each of those stops the consumer.
    ///
    /// The letter is confirmed by the brokers first, then the record is marked, then its offset is
    /// committed. Nothing took effect, so the mark stands for this record alone: another with its key,
    /// a copy or the letter sent to the topic again, is tried like a new one.
    ///
    /// A pattern among the [topics](Self::topics) must not match it: its letters would be handled as
    /// records of another topic, with other keys and tokens.
    pub fn dead_letter(mut self, to: DeadLetter) -> Self {
        self.dead_letter = Some(to);
        self
    }

    /// Topics, among the subscribed ones and by their exact names, whose records may be dead letters
    /// that are to be tried again. A dead-letter topic that is read and not named here gives new
    /// records, with other keys and tokens: what has taken effect since is not recognised.
    ///
    /// One with the headers of a letter has the identity and the token of the record that it
    /// was, in its first topic and partition: what has taken effect since is recognised. Others are
    /// records like any.
    ///
    /// Whoever may write to such a topic can give a record any identity.
    pub fn replay_from<T: Into<String>>(mut self, topics: impl IntoIterator<Item = T>) -> Self {
        self.replay_from = topics.into_iter().map(Into::into).collect();
        self
    }

    /// Called for every copy, on its partition's thread, with what the first record of its key
    /// recorded (see [`Effects::record`](crate::Effects::record)). Durable before it is shown;
    /// looking it up costs a read of the store for each copy.
    pub fn on_duplicate(
        mut self,
        hook: impl Fn(&Delivery<'_>, Option<&[u8]>) + Send + Sync + 'static,
    ) -> Self {
        self.on_duplicate = Some(Arc::new(hook));
        self
    }

    /// Called while a partition is [restored](Restore::FromSource), about once a second and at its
    /// end, on the partition's thread.
    pub fn on_restore(mut self, hook: impl Fn(&RestoreProgress) + Send + Sync + 'static) -> Self {
        self.on_restore = Some(Arc::new(hook));
        self
    }

    /// Called whenever the group gives partitions or takes some away, with all that are assigned from
    /// then on: with none as well, as the group may have more members than partitions. On the
    /// thread that polls: what takes long costs the membership.
    pub fn on_assignment(
        mut self,
        hook: impl Fn(&[TopicPartition]) + Send + Sync + 'static,
    ) -> Self {
        self.on_assignment = Some(Arc::new(hook));
        self
    }

    /// In which order the records of a partition are handled: [`Ordering::Partition`] by default.
    pub fn ordering(mut self, ordering: Ordering) -> Self {
        self.ordering = ordering;
        self
    }

    /// How many records may be handled at once, over all partitions of this consumer; at least 1.
    /// By default 64, and with [`Ordering::Partition`] one of each partition. Of one partition
    /// never more than [`uncommitted_records_max`](Self::uncommitted_records_max).
    ///
    /// The handlers of one partition share its thread: they run at once as far as they wait in
    /// futures. One that computes or blocks should do so in `tokio::task::spawn_blocking`.
    pub fn max_concurrency(mut self, records: usize) -> Self {
        self.concurrency_max = Some(records);
        self
    }

    /// How long after an effect its mark is durable at the latest, given a device that syncs in
    /// half that time. 10 ms by default; 100 ms where each commit is a
    /// [transaction](crate::Transactional), which costs the brokers several writes, or one of the
    /// store's that handlers write in, which takes in records for half of it.
    pub fn commit_within(mut self, limit: Duration) -> Self {
        self.commit_within = Some(limit);
        self
    }

    /// How often positions are committed to the group. They follow the marks, and what is lost of
    /// them is only skipped once more. 1 s by default; always at a revocation and at the end.
    pub fn offset_interval(mut self, interval: Duration) -> Self {
        self.offset_interval = interval;
        self
    }

    /// How long work in hand may take when partitions are taken away, and at the end. Half of
    /// `session.timeout.ms` by default; work that takes longer may be repeated elsewhere.
    pub fn drain_limit(mut self, limit: Duration) -> Self {
        self.drain_limit = Some(limit);
        self
    }

    /// Checks all of it and ties the store to this group and recipe. Nothing is connected yet.
    ///
    /// # Errors
    /// [`Error::Refused`] with everything that is at fault at once, or [`Error::Store`] where the
    /// store belongs to another group or recipe.
    pub fn build<S: EffectStore>(self, store: S) -> Result<IdempotentConsumer<S::Effects>, Error> {
        let store = Arc::new(store);
        let access = Arc::clone(&store).access();
        let mut findings = self.findings(access.outlet.as_deref(), access.transacts());
        findings.extend(self.retention_findings(store.retaining().is_some()));
        let limits = self.limits();
        let (true, Some(recipe)) = (findings.is_empty(), self.recipe) else {
            return Err(audit::Refused(findings).into());
        };
        let mut config = self.config;
        audit::complete_consumer(&mut config);
        let owner = Owner {
            // Refused above where it is missing.
            group: config.get("group.id").unwrap_or_default().to_owned(),
            recipe: recipe.name(),
            scope: self.scope.name().to_owned(),
        };
        let engine = Engine::new(store, &owner, self.scope)?;
        let in_transactions = access.outlet.is_some() || access.transacts();
        let commit_within = self.commit_within.unwrap_or(if in_transactions {
            TRANSACTION_WITHIN
        } else {
            COMMIT_WITHIN
        });
        let settings = Settings {
            recipe,
            missing_key: self.missing_key,
            mismatch: self.mismatch,
            restore: self.restore,
            retry: self.retry,
            retention: self.retention,
            letterbox: None,
            replay_from: self.replay_from.into(),
            on_duplicate: self.on_duplicate,
            on_restore: self.on_restore,
            on_assignment: self.on_assignment,
            ordering: self.ordering,
            concurrency_max: self.concurrency_max.or(match self.ordering {
                Ordering::Partition => None,
                Ordering::Key | Ordering::Unordered => Some(CONCURRENCY_DEFAULT),
            }),
            uncommitted_records_max: limits.uncommitted,
            unsynced_records_max: limits.unsynced,
            commit_linger: commit_within / 2,
            offset_interval: self.offset_interval,
            offsets_sent: access.outlet.is_some(),
            transacts: access.transacts(),
            drain_limit: self.drain_limit.unwrap_or_else(|| half_a_session(&config)),
        };
        let membership = Membership {
            config,
            topics: self.topics,
            engine,
            outlet: access.outlet,
            settings,
            dead_letter: self.dead_letter,
        };
        Ok(IdempotentConsumer {
            effects: access.effects,
            membership,
        })
    }
}

/// Half of the session time-out, librdkafka's default of 45 s where none is set.
fn half_a_session(config: &ClientConfig) -> Duration {
    let session_ms = config
        .get("session.timeout.ms")
        .and_then(|ms| ms.parse().ok());
    Duration::from_millis(session_ms.unwrap_or(45_000) / 2)
}
