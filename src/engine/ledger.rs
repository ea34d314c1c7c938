//! The book of one partition: what was seen, what was done, what is not durable yet.

use std::sync::Arc;
use std::time::Duration;

use super::candidate::Candidate;
use super::open_unit::{Fill, OpenUnit, Wait};
use super::settle::{Recorded, Settle};
use super::{Committed, Engine, Wake};
use crate::claim::Decision;
use crate::key::{Fingerprinter, Identity};
use crate::record::{NextOffset, Record, TopicPartition};
use crate::store::{Lease, Mark, StoreError};

/// What is known of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing: its key is claimed now, and must be [done](Ledger::done) or
    /// [released](Ledger::release).
    New,
    /// It has been done.
    Known {
        /// Why it is not handled again.
        decision: Decision,
        /// What took effect. Its result can be asked from the store once `durable`.
        mark: Mark,
        /// Whether the mark has been committed; else it will be with the next commit.
        durable: bool,
    },
    /// A record of this key is in flight, [held](Ledger::hold) here or in another ledger: look
    /// again when it is settled, or [free](Ledger::wait_free).
    Busy,
}

/// One partition, from its lease to its release. Dropping it gives up what is not committed.
pub struct Ledger {
    pub(super) engine: Engine,
    pub(super) lease: Lease,
    pub(super) open: Arc<OpenUnit>,
    hasher: Fingerprinter,
    pub(super) wake: Option<Arc<Wake>>,
    /// Where a partition begins that the store does not know yet.
    pub(super) started: bool,
}

impl Ledger {
    pub(super) fn new(
        engine: Engine,
        lease: Lease,
        open: Arc<OpenUnit>,
        hasher: Fingerprinter,
    ) -> Self {
        Self {
            engine,
            started: lease.head.is_some(),
            lease,
            open,
            hasher,
            wake: None,
        }
    }

    /// The lease, with the head and the doubt as they were when it began.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// The partition.
    #[must_use]
    pub fn partition(&self) -> &TopicPartition {
        self.open.partition()
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn hasher(&self) -> &Fingerprinter {
        &self.hasher
    }

    /// Has the committer woken whenever there is something to commit.
    pub(crate) fn wake_with(&mut self, wake: Arc<Wake>) {
        self.wake = Some(wake);
    }

    /// Nobody but this ledger commits what it settles: the store writes it together with what the
    /// handlers wrote, on the lane's own thread.
    pub(crate) fn commit_alone(&mut self) {
        self.wake = None;
        self.open.be_alone();
    }

    /// Prepares a record that is nothing but a key and perhaps a value.
    #[must_use]
    pub fn candidate(&self, offset: i64, key: &[u8], value: Option<&[u8]>) -> Candidate {
        let identity = Identity::Bytes(key.into());
        Candidate {
            offset,
            timestamp_ms: -1,
            fingerprint: Some(self.hasher.fingerprint(&identity)),
            value_digest: self.hasher.digest(value),
            over_restored: false,
        }
    }

    /// Prepares a record, with the hasher of where it was first.
    pub(crate) fn candidate_of(
        &self,
        record: &Record<'_>,
        identity: Option<&Identity<'_>>,
        hasher: &Fingerprinter,
    ) -> Candidate {
        Candidate {
            offset: record.offset,
            timestamp_ms: record.timestamp_ms.unwrap_or(-1),
            fingerprint: identity.map(|identity| hasher.fingerprint(identity)),
            value_digest: self.hasher.digest(record.value),
            over_restored: false,
        }
    }

    /// Waits until no other ledger has the candidate's key in flight, or for `limit`.
    #[must_use]
    pub fn wait_free(&self, candidate: &Candidate, limit: Duration) -> bool {
        match &candidate.fingerprint {
            Some(key) => self.engine.shared.claims().wait_free(key, limit),
            None => true,
        }
    }

    /// Takes a record in whose outcome comes later: what lies behind it may be settled first. Its
    /// key has been [claimed](Look::New), or it waits for one that is [busy](Look::Busy).
    ///
    /// Held records are settled in any order. Until one is, the position of the partition stays
    /// before it, and what was settled behind it is durable all the same: the next lease finds it
    /// done. Records are held in the order of their offsets, and no more than a few thousand at a
    /// time: each takes up to 12 bytes of every unit that is written meanwhile, and a store refuses
    /// units above 116 KiB.
    pub fn hold(&mut self, candidate: &Candidate) {
        self.start(candidate);
        self.open.hold(candidate.offset, candidate.fingerprint);
    }

    /// The first record of a partition that the store does not know: it begins here.
    pub(super) fn start(&mut self, candidate: &Candidate) {
        if !self.started {
            self.started = true;
            self.open
                .start_at(NextOffset::after(candidate.offset.saturating_sub(1)));
        }
    }

    /// The effect has happened: the mark goes into the unit under way, with a result if there is
    /// one for copies to be answered with.
    ///
    /// The head moves behind the record, and what lies below it does not come again: whatever was
    /// claimed before it and neither [held](Ledger::hold), done nor skipped is passed over for good.
    /// So a record that was [released](Ledger::release) is held, or tried again before the next one
    /// is settled.
    ///
    /// # Errors
    /// [`StoreError::Misused`] for an offset below one that was settled before, unless it is held,
    /// and for one that is settled a second time.
    /// [`StoreError::Fenced`] where the lease is over: the mark is not kept. The key stays claimed
    /// for the life of the engine; only a newer ledger of the partition may take the same record.
    pub fn done(
        &mut self,
        candidate: &Candidate,
        result: Option<Box<[u8]>>,
    ) -> Result<(), StoreError> {
        let recorded = Recorded {
            result,
            outbox: Vec::new(),
        };
        self.settle(candidate, Settle::Done(recorded)).map(drop)
    }

    /// The record went to the dead letters: its own redelivery is passed over, while another record
    /// of its key is tried.
    ///
    /// # Errors
    /// As [`done`](Ledger::done).
    pub fn dead_lettered(&mut self, candidate: &Candidate) -> Result<(), StoreError> {
        self.dead_lettered_fill(candidate).map(drop)
    }

    pub(crate) fn dead_lettered_fill(&mut self, candidate: &Candidate) -> Result<Fill, StoreError> {
        self.settle(candidate, Settle::DeadLettered)
    }

    /// As [`done`](Ledger::done), and says how full the unit is.
    pub(crate) fn done_fill(
        &mut self,
        candidate: &Candidate,
        recorded: Recorded,
    ) -> Result<Fill, StoreError> {
        self.settle(candidate, Settle::Done(recorded))
    }

    /// The key counts as done although nothing was handled here: a restore.
    pub(crate) fn mark_only(&mut self, candidate: &Candidate) -> Result<Fill, StoreError> {
        self.settle(candidate, Settle::Restored)
    }

    /// The record is passed over: the head moves behind it.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] where the lease is over, [`StoreError::Misused`] for an offset below
    /// one that was settled before, unless it is held.
    pub fn skip(&mut self, candidate: &Candidate) -> Result<(), StoreError> {
        self.settle(candidate, Settle::Skipped).map(drop)
    }

    /// The handler did not succeed: the key is free again, and the head stays before the record. One
    /// that is [held](Ledger::hold) stays so.
    pub fn release(&self, candidate: &Candidate) {
        if let Some(key) = &candidate.fingerprint {
            let claims = self.engine.shared.claims();
            claims.release_at(key, self.open.holder(), candidate.offset);
        }
    }

    /// What late work is refused with.
    pub(crate) fn fenced(&self) -> StoreError {
        StoreError::Fenced {
            partition: self.partition().clone(),
            ours: self.lease.epoch,
            newest: self.lease.epoch.saturating_add(1),
        }
    }

    pub(super) fn call(&self, fill: Fill) {
        let Some(wake) = &self.wake else { return };
        if fill.filled {
            wake.urge();
        } else if fill.first {
            wake.stir();
        }
    }

    /// Has the committer come now.
    pub(crate) fn urge(&self) {
        if let Some(wake) = &self.wake {
            wake.urge();
        }
    }

    /// Waits until so few effects would be repeated after a death of the process, and so few have no
    /// durable mark.
    pub(crate) fn wait_safe(&self, at_risk: usize, uncommitted: usize, patience: Duration) -> Wait {
        self.open.wait_safe(at_risk, uncommitted, patience)
    }

    /// Has the store keep what is not committed, and says how many effects a death of the process
    /// would repeat now.
    pub(crate) fn journal(&self) -> usize {
        self.open.journal(self.engine.store())
    }

    /// Effects that a death of the process would repeat, and all whose marks are not durable yet.
    pub(crate) fn unmarked(&self) -> (usize, usize) {
        self.open.unmarked()
    }

    /// Behind the highest record that was settled.
    pub(crate) fn settled_to(&self) -> NextOffset {
        self.open.settled_to()
    }

    /// The lowest record that is not settled.
    pub(crate) fn unfinished(&self) -> NextOffset {
        self.open.unfinished()
    }

    /// Waits until something has become durable, or nothing will any more.
    pub(crate) async fn changed(&self) {
        self.open.changed().await;
    }

    pub(crate) fn wait_clean(&self, patience: Duration) -> Wait {
        self.open.wait_clean(patience)
    }

    /// Commits this ledger's unit alone.
    pub(crate) fn commit_own(&self) -> Result<Option<Committed>, StoreError> {
        let committed = self.engine.commit_where(
            |open| std::ptr::eq(open, &raw const *self.open),
            |written| written,
        )?;
        Ok(committed.into_iter().next())
    }

    /// Commits what is left and ends the lease in order, so that the next one is not in doubt.
    ///
    /// # Errors
    /// The store's, or [`StoreError::Fenced`] where the lease was over before: then it ends as if
    /// the process had died here, and the next one is in doubt.
    pub fn finish(self) -> Result<Option<Committed>, StoreError> {
        let committed = self.commit_own()?;
        if !self.open.is_clean() {
            // A failed write, or a newer lease: effects may have happened that have no mark.
            return Err(self.fenced());
        }
        self.engine.store().release(&self.lease)?;
        Ok(committed)
    }

    /// Commits what is left, and leaves the next lease in doubt: an effect may have happened that
    /// has no mark.
    pub(crate) fn finish_in_doubt(self) -> Result<Option<Committed>, StoreError> {
        self.commit_own()
    }
}

/// A point between two commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(pub(super) u64);

impl Drop for Ledger {
    fn drop(&mut self) {
        self.engine.close(&self.open);
        for (offset, key) in self.open.let_go() {
            let claims = self.engine.shared.claims();
            claims.release_at(&key, self.open.holder(), offset);
        }
        self.engine.forget(&self.open);
    }
}
