//! Decides what a store is to forget, and has it forgotten step by step.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::look::{Jump, Look};
use super::{AtCap, Retention, shrink};
use crate::clock::{Clock, ms};
use crate::metrics;
use crate::record::{NextOffset, TopicPartition};
use crate::store::{Expired, Expiry, PartitionId, Retained, Retaining, Store, StoreError};

/// Carries out a [`Retention`] on a store.
///
/// [`IdempotentConsumer`](crate::IdempotentConsumer) has one of its own. For those who work with the
/// [engine](crate::engine): make one before the work begins, and let it
/// [sweep](Sweeper::sweep) now and then, in a moment when nobody waits.
pub struct Sweeper {
    store: Arc<dyn Store>,
    retention: Retention,
    clock: Arc<dyn Clock>,
    looks: HashMap<PartitionId, Look>,
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// What has expired.
    pub expired: Expired,
    /// Partitions of which nothing expires, since their clock has jumped.
    pub held: Vec<Held>,
}

/// A partition whose clock has jumped: see [`Retention::sudden_percent_max`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// The partition.
    pub partition: TopicPartition,
    /// How many keys would have expired at once.
    pub keys: u64,
    /// Of how many.
    pub of: u64,
}

impl Sweeper {
    /// A sweeper of a store. It looks at the partitions' clocks as they stand.
    ///
    /// # Errors
    /// [`StoreError::Misused`] for a bounded retention on a store that keeps every key; or where
    /// the store cannot be read.
    pub fn new(store: Arc<dyn Store>, retention: Retention) -> Result<Self, StoreError> {
        let (clock, list) = match store.retaining() {
            Some(retaining) => (Some(retaining.clock()), retaining.retained()?),
            None => (None, Vec::new()),
        };
        let Some(clock) = clock else {
            return Err(StoreError::Misused(
                "this store has no retention of its own; a PostgresStore has PostgresStore::expire",
            ));
        };
        let looks = list
            .iter()
            .map(|one| (one.id, Look::first(one.clock_ms, &*clock)))
            .collect();
        Ok(Self {
            store,
            retention,
            clock,
            looks,
        })
    }

    /// Drops everything that the retention does not keep, of all partitions: for whoever has no
    /// group to ask. The calling thread is busy meanwhile; commits of others go on between two
    /// steps.
    ///
    /// With [`AtCap::Pause`] nothing goes because of a cap: whoever calls looks at
    /// [`is_full`](Sweeper::is_full), and takes in nothing new while it is.
    ///
    /// # Errors
    /// Where the store cannot be read or written.
    pub fn sweep(&mut self) -> Result<Swept, StoreError> {
        let limit = |one: &Retained| one.position;
        self.sweep_below(&limit, &mut || true)
    }

    /// Whether the store holds as much as it may; with [`AtCap::ShrinkWindow`], more than that,
    /// since nothing of it may be dropped yet.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let usage = self.store.retaining().map(Retaining::usage);
        usage.is_some_and(|usage| self.retention.full(usage).is_some())
    }

    /// As [`sweep`](Sweeper::sweep), of what ends below `limit`. `rest` is called between two
    /// steps, and says whether to go on.
    pub(crate) fn sweep_below(
        &mut self,
        limit: &dyn Fn(&Retained) -> NextOffset,
        rest: &mut dyn FnMut() -> bool,
    ) -> Result<Swept, StoreError> {
        let store = Arc::clone(&self.store);
        let Some(store) = store.retaining() else {
            return Ok(Swept::default());
        };
        let mut swept = Swept::default();
        if let Some(keep) = self.retention.duration() {
            for one in store.retained()? {
                let older_than_ms = one.clock_ms.saturating_sub(ms(keep));
                let expiry = Expiry {
                    id: one.id,
                    older_than_ms,
                    below: limit(&one),
                    entries: u64::MAX,
                    bytes: u64::MAX,
                };
                if let Some(held) = self.look(store, &one, &expiry, keep)? {
                    swept.held.push(held);
                    continue;
                }
                let mut goes_on = one.oldest_ms < older_than_ms;
                while goes_on {
                    let gone = store.expire(&expiry)?;
                    swept.expired = swept.expired.and(gone);
                    goes_on = gone.units > 0 && rest();
                }
            }
        }
        if self.retention.policy() == AtCap::ShrinkWindow {
            let shrunk = shrink::shrink(store, &self.retention, limit, rest)?;
            swept.expired = swept.expired.and(shrunk);
        }
        tell(store, &swept)?;
        Ok(swept)
    }

    /// Whether a partition's clock has moved so suddenly, and so much would go with it, that
    /// nothing goes.
    fn look(
        &mut self,
        store: &dyn Retaining,
        one: &Retained,
        expiry: &Expiry,
        keep: Duration,
    ) -> Result<Option<Held>, StoreError> {
        let now = self.clock.elapsed();
        let first = || Look::first(one.clock_ms, &*self.clock);
        let look = self.looks.entry(one.id).or_insert_with(first);
        let held = || -> Result<Held, StoreError> {
            Ok(Held {
                partition: one.partition.clone(),
                keys: store.would_expire(expiry)?,
                of: one.usage.entries,
            })
        };
        if let Some(at) = look.held_at {
            // After so long everything that was there is older than was promised, by a clock that
            // nobody sets. Not before: the longer it is, the less of a jump the jump looks like.
            if now.saturating_sub(at) < keep {
                return held().map(Some);
            }
            look.believe(one.clock_ms, now);
            return Ok(None);
        }
        let jump = look.jump(one.clock_ms, now);
        let (Some(jump), true) = (jump, one.oldest_ms < expiry.older_than_ms) else {
            look.believe(one.clock_ms, now);
            return Ok(None);
        };
        let held = held()?;
        let percent = u64::from(self.retention.percent());
        if held.keys.saturating_mul(100) <= held.of.saturating_mul(percent) {
            look.believe(one.clock_ms, now);
            return Ok(None);
        }
        look.held_at = Some(now);
        warn(&held, jump, keep, percent);
        Ok(Some(held))
    }
}

fn tell(store: &dyn Retaining, swept: &Swept) -> Result<(), StoreError> {
    metrics::expired(swept.expired, swept.held.len());
    for one in store.retained()? {
        metrics::effective_retention(&one);
    }
    let gone = swept.expired;
    if gone.units > 0 {
        tracing::debug!(keys = gone.keys, units = gone.units, "expired");
    }
    Ok(())
}

fn warn(held: &Held, jump: Jump, keep: Duration, percent: u64) {
    let Held {
        partition,
        keys,
        of,
    } = held;
    tracing::warn!(
        %partition, keys, of,
        "nothing expires: the clock of the partition has moved by {:?} in {:?}, and {keys} of its \
         {of} keys would go at once, more than {percent} per cent. Looked at again after {keep:?}. \
         Where the records are right, allow it with Retention::sudden_percent_max(100)",
        jump.moved, jump.passed,
    );
}
