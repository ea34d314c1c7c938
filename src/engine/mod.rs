//! The engine without Kafka: claim, settle, commit, for any ordered source.
//!
//! [`Engine::lease`] takes one partition of the source and gives a [`Ledger`]. Every record, in
//! order, is [looked at](Ledger::look), handled if new, and [settled](Ledger::done). Nothing is
//! durable, and nothing suppresses a copy after a crash, until [`Engine::commit`] has returned.
//!
//! ```
//! use std::sync::Arc;
//! use idempotent_consumer::engine::{Engine, Look};
//! use idempotent_consumer::store::{MemoryStore, Owner};
//! use idempotent_consumer::{TopicPartition, key::Scope};
//!
//! let owner = Owner { group: "shop".into(), recipe: "line".into(), scope: "topic".into() };
//! let engine = Engine::new(Arc::new(MemoryStore::new()), &owner, Scope::Topic)?;
//! let mut ledger = engine.lease(&TopicPartition::new("orders", 0))?;
//! let mut shipped = Vec::new();
//! for (offset, order) in ["order-1", "order-2", "order-1"].iter().enumerate() {
//!     let candidate = ledger.candidate(offset as i64, order.as_bytes(), None);
//!     match ledger.look(&candidate)? {
//!         Look::New => {
//!             shipped.push(*order); // the effect
//!             ledger.done(&candidate, None)?;
//!         }
//!         Look::Known { .. } => ledger.skip(&candidate)?,
//!         Look::Busy => unreachable!("one ledger never waits for another"),
//!     }
//! }
//! engine.commit()?; // from here on a crash undoes nothing
//! assert_eq!(shipped, ["order-1", "order-2"]);
//! # Ok::<(), idempotent_consumer::store::StoreError>(())
//! ```

mod candidate;
mod committer;
mod ledger;
mod look;
mod open_unit;
mod settle;
#[cfg(feature = "postgres")]
mod together;
mod wake;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

pub use self::candidate::Candidate;
pub(crate) use self::committer::Committer;
pub(crate) use self::ledger::Moment;
pub use self::ledger::{Ledger, Look};
use self::open_unit::OpenUnit;
pub(crate) use self::open_unit::{Fill, Wait};
pub(crate) use self::settle::Recorded;
#[cfg(feature = "postgres")]
pub(crate) use self::together::Prepared;
pub(crate) use self::wake::Wake;
use crate::key::{Fingerprinter, HashKey, Scope};
use crate::metrics;
use crate::record::{NextOffset, TopicPartition};
use crate::retention::{Retention, Sweeper};
use crate::store::{Claims, CommitUnit, HolderId, Owner, Store, StoreError};

/// Decides about keys and writes what has been done, for any number of partitions.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn Store>,
    /// This engine's number on the store.
    number: u64,
    hash_key: HashKey,
    group: String,
    scope: Scope,
    /// The units under way, one a lease.
    open: Mutex<Vec<Arc<OpenUnit>>>,
    /// Held by whoever commits: units of a partition must reach the store in their order.
    committing: Mutex<()>,
    /// Counts leases.
    holders: AtomicU64,
}

impl Shared {
    /// The store's and not this engine's: another engine on it must not handle copies of what is
    /// in flight here.
    fn claims(&self) -> &Claims {
        self.store.claims()
    }

    /// Whether what a handler does has happened when it returns: not where it takes effect in the
    /// commit alone.
    fn happens_at_once(&self, open: &OpenUnit) -> bool {
        !(self.store.effects_in_commit() || open.is_alone())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.claims().leave(self.number);
    }
}

/// How far a commit brought one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The partition.
    pub partition: TopicPartition,
    /// Everything below is durable.
    pub next: NextOffset,
}

impl Engine {
    /// An engine on a store that belongs to `owner`.
    ///
    /// Several may work on one store: each on partitions of its own, since a lease fences the one
    /// before it, whosever it was. A key that is in flight in one is [busy](Look::Busy) in the
    /// others. What an engine still has in flight at its end is free again, as after a crash.
    ///
    /// # Errors
    /// Where the store [belongs to another](StoreError::Foreign) or cannot be written.
    pub fn new(store: Arc<dyn Store>, owner: &Owner, scope: Scope) -> Result<Self, StoreError> {
        let hash_key = store.bind(owner)?;
        Ok(Self {
            shared: Arc::new(Shared {
                number: store.claims().enter(),
                store,
                hash_key,
                group: owner.group.clone(),
                scope,
                open: Mutex::default(),
                committing: Mutex::default(),
                holders: AtomicU64::new(0),
            }),
        })
    }

    /// The store underneath.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        &*self.shared.store
    }

    /// What drops the keys that a retention does not keep. Make it before the first record is
    /// looked at: it notices clocks that jump from then on.
    ///
    /// # Errors
    /// As [`Sweeper::new`].
    pub fn sweeper(&self, retention: Retention) -> Result<Sweeper, StoreError> {
        Sweeper::new(Arc::clone(&self.shared.store), retention)
    }

    /// Takes a partition. A ledger of the same partition that was taken before is fenced: what it
    /// has settled is committed first, and what it settles from here on is refused.
    ///
    /// # Errors
    /// Where the store cannot write the lease.
    pub fn lease(&self, partition: &TopicPartition) -> Result<Ledger, StoreError> {
        // Not while a commit is under way: one of its units could be fenced by this very lease,
        // and the store would refuse the others with it.
        let _turn = self.turn();
        // What only its worker commits is not taken from under it.
        let older = |open: &OpenUnit| open.partition() == partition && !open.is_alone();
        self.write(older, |written| written)?;
        let lease = self.shared.store.lease(partition)?;
        let holder = HolderId {
            engine: self.shared.number,
            lease: self.shared.holders.fetch_add(1, Ordering::Relaxed),
        };
        let gaps = self.shared.store.gaps(lease.id);
        let open = Arc::new(OpenUnit::new(partition.clone(), &lease, gaps, holder));
        let mut list = self.list();
        for older in list.iter().filter(|older| older.partition() == partition) {
            self.close(older);
        }
        list.push(Arc::clone(&open));
        drop(list);
        let hasher = self.hasher(partition);
        Ok(Ledger::new(self.clone(), lease, open, hasher))
    }

    /// Hashes the keys of a partition.
    pub(crate) fn hasher(&self, partition: &TopicPartition) -> Fingerprinter {
        let shared = &*self.shared;
        Fingerprinter::new(&shared.hash_key, &shared.group, shared.scope, partition)
    }

    /// Writes everything settled so far, durably, and says how far each partition has come.
    ///
    /// # Errors
    /// The store's; none of the units in question counts as done then.
    pub fn commit(&self) -> Result<Vec<Committed>, StoreError> {
        self.commit_where(|_| true, |written| written)
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<OpenUnit>>> {
        self.shared
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.shared
            .committing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits the open units that `wanted` picks, and tells of it before anybody else commits:
    /// whoever ends a lease finds all its commits told.
    pub(crate) fn commit_where<T>(
        &self,
        wanted: impl Fn(&OpenUnit) -> bool,
        told: impl FnOnce(Result<Vec<Committed>, StoreError>) -> T,
    ) -> T {
        let _turn = self.turn();
        self.write(wanted, told)
    }

    /// As `commit_where`, for whoever has the turn.
    fn write<T>(
        &self,
        wanted: impl Fn(&OpenUnit) -> bool,
        told: impl FnOnce(Result<Vec<Committed>, StoreError>) -> T,
    ) -> T {
        let shared = &*self.shared;
        let open: Vec<_> = {
            let list = self.list();
            list.iter().filter(|open| wanted(open)).cloned().collect()
        };
        let (mut units, mut owners) = (Vec::new(), Vec::new());
        for open in open {
            if let Some((unit, effects)) = open.take(&*shared.store) {
                units.push(unit);
                owners.push((open, effects));
            }
        }
        if units.is_empty() {
            return told(Ok(Vec::new()));
        }
        let begun = Instant::now();
        let mut written = shared.store.commit(&units);
        // Another engine on the store has taken a partition: nothing was written, and the others'
        // marks must not be lost for that.
        while let Some((partition, sent)) = written.as_ref().err().and_then(late) {
            let late = owners
                .iter()
                .position(|(open, _)| open.partition() == partition);
            let Some(late) = late else { break };
            let ((open, _), unit) = (owners.remove(late), units.remove(late));
            self.let_go(&open, &unit, sent);
            if units.is_empty() {
                return told(Ok(Vec::new()));
            }
            written = shared.store.commit(&units);
        }
        metrics::committed(units.len(), begun.elapsed());
        // Between the index and the claims: whoever finds a claim gone must find the mark.
        shared.claims().committed();
        if let Err(error) = written {
            // Told before the units are closed: what their workers run into then is its echo.
            let answer = told(Err(error));
            // The claims stay: what has taken effect without a mark is not handled again by
            // whoever waits for it. The store is poisoned, so they wait for the end.
            for (open, _) in &owners {
                drop(open.close());
            }
            return answer;
        }
        let mut committed = Vec::with_capacity(units.len());
        for ((open, effects), unit) in owners.iter().zip(&units) {
            let keys = unit.entries.iter().map(|entry| &entry.fingerprint);
            shared.claims().release_all(keys, open.holder());
            open.hardened(*effects);
            committed.push(Committed {
                partition: open.partition().clone(),
                next: unit.position(),
            });
        }
        told(Ok(committed))
    }

    /// Ends a unit that is late, and what was settled behind it. `sent` says that the unit has taken
    /// effect although it is not marked.
    fn let_go(&self, open: &OpenUnit, unit: &CommitUnit, sent: bool) {
        let claims = self.shared.claims();
        let at_once = self.shared.happens_at_once(open);
        let behind = open.close();
        let entries = unit.entries.iter().map(|entry| entry.fingerprint);
        let keys = entries.map(|key| (key, at_once || sent));
        for (key, happened) in keys.chain(behind.into_iter().map(|key| (key, at_once))) {
            if happened {
                claims.orphan(&key, open.holder());
            } else {
                claims.release(&key, open.holder());
            }
        }
    }

    /// Ends a unit. What it holds is not committed, and its keys are free for whoever comes next.
    fn close(&self, open: &OpenUnit) {
        for key in open.close() {
            self.shared.claims().release(&key, open.holder());
        }
    }

    fn forget(&self, gone: &Arc<OpenUnit>) {
        let mut list = self.list();
        list.retain(|open| !Arc::ptr_eq(open, gone));
    }

    fn open_units(&self) -> Vec<Arc<OpenUnit>> {
        self.list().clone()
    }
}

/// The partition whose unit is late, and whether what it was to send was sent.
fn late(error: &StoreError) -> Option<(&TopicPartition, bool)> {
    match error {
        StoreError::Fenced { partition, .. } => Some((partition, false)),
        StoreError::FencedUnmarked { partition, .. } => Some((partition, true)),
        _ => None,
    }
}
