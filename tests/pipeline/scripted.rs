//! A store that fails, waits and remembers on command.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use idempotent_consumer::key::{Fingerprint, HashKey};
use idempotent_consumer::store::{
    Claims, CommitUnit, Gaps, Head, Lease, Mark, MemoryStore, Owner, PartitionId, Place, Retaining,
    Store, StoreError, Summary,
};
use idempotent_consumer::{Access, EffectStore, Effects, NextOffset, TopicPartition};

use crate::support::wait_for;

/// A memory store between a test and a consumer. Clones are the same store, so that a test looks
/// on, and a "crash" leaves it behind.
#[derive(Clone, Default)]
pub(crate) struct Scripted(Arc<Inner>);

#[derive(Default)]
struct Inner {
    store: MemoryStore,
    blocked: AtomicBool,
    panics: AtomicBool,
    /// Commits that succeed before the first one fails; negative for all.
    fail_at: AtomicI64,
    failing: AtomicBool,
    commits: AtomicUsize,
    waiting: AtomicUsize,
    marks: AtomicUsize,
    calls: Mutex<Vec<String>>,
}

impl Scripted {
    pub(crate) fn new() -> Self {
        let new = Self::default();
        new.0.fail_at.store(-1, Ordering::SeqCst);
        new
    }

    /// Has commits wait.
    pub(crate) fn block(&self, blocked: bool) {
        self.0.blocked.store(blocked, Ordering::SeqCst);
    }

    /// Has all commits fail but the next `successes`.
    pub(crate) fn fail_after(&self, successes: i64) {
        self.0.fail_at.store(successes, Ordering::SeqCst);
        self.0.failing.store(true, Ordering::SeqCst);
    }

    /// Has commits succeed again, as after a repair.
    pub(crate) fn mend(&self) {
        self.0.failing.store(false, Ordering::SeqCst);
        self.0.panics.store(false, Ordering::SeqCst);
    }

    /// Has commits panic.
    pub(crate) fn panic(&self) {
        self.0.panics.store(true, Ordering::SeqCst);
    }

    /// Commits that have returned.
    pub(crate) fn commits(&self) -> usize {
        self.0.commits.load(Ordering::SeqCst)
    }

    /// Commits that are waiting.
    pub(crate) fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::SeqCst)
    }

    /// Marks whose commit has returned.
    pub(crate) fn marks(&self) -> usize {
        self.0.marks.load(Ordering::SeqCst)
    }

    /// What was called, in order: `lease 0`, `commit 0 0..2`, `release 0`.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.0.calls.lock().unwrap().clone()
    }

    pub(crate) fn note(&self, call: impl Into<String>) {
        self.0.calls.lock().unwrap().push(call.into());
    }

    /// Where the store stands on a partition.
    pub(crate) fn head(&self, partition: i32) -> Option<i64> {
        let heads = self.0.store.heads();
        let (_, head) = heads
            .iter()
            .find(|(name, _)| name.partition() == partition)?;
        head.map(|head| head.next.get())
    }

    /// What of a partition is not done below where the store stands.
    pub(crate) fn gaps_of(&self, partition: i32) -> Vec<(i64, i64)> {
        let heads = self.0.store.heads();
        let id = heads
            .iter()
            .position(|(name, _)| name.partition() == partition);
        let id = id.map(|id| PartitionId(u32::try_from(id).unwrap()));
        let gaps = id.map(|id| self.0.store.gaps(id)).unwrap_or_default();
        gaps.iter().map(|gap| (gap.from, gap.to)).collect()
    }
}

impl Store for Scripted {
    fn bind(&self, owner: &Owner) -> Result<HashKey, StoreError> {
        self.0.store.bind(owner)
    }

    /// Forgets which cluster it was, so that a topic can be made again on another one.
    fn bind_cluster(&self, _cluster_id: &str) -> Result<(), StoreError> {
        Ok(())
    }

    fn lease(&self, partition: &TopicPartition) -> Result<Lease, StoreError> {
        self.note(format!("lease {}", partition.partition()));
        self.0.store.lease(partition)
    }

    fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.note(format!("release {}", lease.id.0));
        self.0.store.release(lease)
    }

    fn lookup(
        &self,
        keys: &[Fingerprint],
        found: &mut Vec<Option<Mark>>,
    ) -> Result<(), StoreError> {
        self.0.store.lookup(keys, found)
    }

    fn unit_behind(
        &self,
        id: PartitionId,
        place: Place,
    ) -> Result<Option<(Place, CommitUnit)>, StoreError> {
        self.0.store.unit_behind(id, place)
    }

    fn gaps(&self, id: PartitionId) -> Gaps {
        self.0.store.gaps(id)
    }

    fn retained_from(&self, id: PartitionId) -> NextOffset {
        self.0.store.retained_from(id)
    }

    fn retaining(&self) -> Option<&dyn Retaining> {
        self.0.store.retaining()
    }

    fn commit(&self, units: &[CommitUnit]) -> Result<(), StoreError> {
        self.0.waiting.fetch_add(1, Ordering::SeqCst);
        wait_for("a blocked store", || !self.0.blocked.load(Ordering::SeqCst));
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        assert!(!self.0.panics.load(Ordering::SeqCst), "asked to panic");
        if self.0.failing.load(Ordering::SeqCst)
            && self.0.fail_at.fetch_sub(1, Ordering::SeqCst) <= 0
        {
            self.note("commit fails");
            return Err(StoreError::Poisoned {
                place: "the scripted store".to_owned(),
                cause: "told to fail".to_owned(),
            });
        }
        self.0.store.commit(units)?;
        for unit in units {
            self.0.marks.fetch_add(unit.entries.len(), Ordering::SeqCst);
            self.note(format!(
                "commit {} {}..{}",
                unit.id.0, unit.previous, unit.next
            ));
        }
        self.0.commits.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn claims(&self) -> &Claims {
        self.0.store.claims()
    }

    fn heads(&self) -> Vec<(TopicPartition, Option<Head>)> {
        self.0.store.heads()
    }

    fn summary(&self) -> Summary {
        self.0.store.summary()
    }
}

impl EffectStore for Scripted {
    type Effects = Effects;

    fn access(self: Arc<Self>) -> Access<Effects> {
        Access::recorded()
    }
}
