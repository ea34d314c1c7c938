//! One partition's work, in order: read, decide, hand out what is new, settle what comes back.
//!
//! Both ways to consume are written on it: `run` drives it with a handler, the pull form with
//! claims that are answered from elsewhere.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::doubt::Doubt;
use super::report::Counts;
use super::settings::{Mismatch, READ_RECORDS_MAX, Settings};
use super::shared::{Restoring, Shared};
use super::stop::Stop;
use crate::claim::Decision;
use crate::engine::{Candidate, Committed, Ledger, Look, UNIT_BYTES_MAX, Wait};
use crate::error::Error;
use crate::handler::Delivery;
use crate::key::{Fingerprint, MissingKey, NoIdentity};
use crate::record::{Coordinates, NextOffset, Record, TopicPartition};
use crate::source::{Batch, Reader};
use crate::store::Mark;

/// How long one read waits for records: how late a stop is noticed.
const READ_WAIT: Duration = Duration::from_millis(50);
/// How often it is asked whether another partition's restore is over.
/// How long a silent partition is waited for before its end is asked for: several of librdkafka's
/// fetches, each of which the broker answers within half a second.
const RESTORE_SILENCE: Duration = Duration::from_secs(3);
const RESTORE_WAIT: Duration = Duration::from_millis(5);
/// Records decided about at once. Few, so that what a look-up said is rarely old when it is used.
const WINDOW: usize = 256;

/// What a lane does next.
pub(super) enum Step {
    /// A record to handle.
    Handle(Work),
    /// A copy that the driver wants to see; it counts as done already.
    Copy(Work, Option<Vec<u8>>),
    /// The partition is given up.
    Stopped,
}

/// A record that has been handed out.
pub(crate) struct Work {
    index: usize,
    batch: Arc<dyn Batch>,
    pub(super) candidate: Candidate,
    pub(super) decision: Decision,
    pub(super) attempt: u32,
    pub(super) in_doubt: bool,
}

impl Work {
    pub(super) fn record(&self) -> Option<Record<'_>> {
        self.batch.record(self.index)
    }

    pub(super) fn batch(&self) -> &Arc<dyn Batch> {
        &self.batch
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }
}

/// One record of the window, as far as it is decided without a claim.
struct Prepared {
    candidate: Candidate,
    no_key: Option<NoIdentity>,
}

pub(crate) struct Lane {
    ledger: Ledger,
    reader: Box<dyn Reader>,
    settings: Arc<Settings>,
    shared: Arc<Shared>,
    stop: Arc<Stop>,
    /// Everything below has been settled; what comes again from there is passed over.
    position: NextOffset,
    /// Below, keys are marked without a handler.
    restore_until: NextOffset,
    /// Until that is done.
    restoring: Option<Restoring>,
    /// Since when no record has come, while it is.
    silent_since: Option<Instant>,
    doubt: Doubt,
    counts: Counts,
    /// Whether the driver wants to see copies.
    shows_copies: bool,
    batch: Option<Arc<dyn Batch>>,
    /// The place of the next record of the batch to prepare, and the prepared ones before it.
    prepared_to: usize,
    window: Vec<Prepared>,
    keys: Vec<Fingerprint>,
    found: Vec<Option<Mark>>,
    /// The next record of the window, and the next answer in `found`.
    cursor: usize,
    answer: usize,
    looked_at: Option<crate::engine::Moment>,
}

/// What a lane begins with.
pub(super) struct Beginning {
    pub(super) ledger: Ledger,
    pub(super) reader: Box<dyn Reader>,
    pub(super) committed: Option<NextOffset>,
    pub(super) restore_until: NextOffset,
    pub(super) restoring: Option<Restoring>,
    pub(super) shows_copies: bool,
}

impl Lane {
    pub(super) fn new(
        beginning: Beginning,
        settings: Arc<Settings>,
        shared: Arc<Shared>,
        stop: Arc<Stop>,
    ) -> Self {
        let lease = *beginning.ledger.lease();
        Self {
            position: lease.head.map_or(NextOffset::ZERO, |head| head.next),
            restore_until: beginning.restore_until,
            restoring: beginning.restoring,
            silent_since: None,
            doubt: Doubt::new(&lease, beginning.committed),
            shows_copies: beginning.shows_copies,
            ledger: beginning.ledger,
            reader: beginning.reader,
            settings,
            shared,
            stop,
            counts: Counts::default(),
            batch: None,
            prepared_to: 0,
            window: Vec::with_capacity(WINDOW),
            keys: Vec::with_capacity(WINDOW),
            found: Vec::with_capacity(WINDOW),
            cursor: 0,
            answer: 0,
            looked_at: None,
        }
    }

    pub(super) fn partition(&self) -> &TopicPartition {
        self.ledger.partition()
    }

    pub(super) fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    pub(super) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Whether the partition is what the store knows: it must reach up to the head.
    pub(super) fn check_topic(&self) -> Result<(), Error> {
        let head = self.ledger.lease().head.map(|head| head.next);
        if head.is_none() && self.restoring.is_none() {
            return Ok(());
        }
        let (low, high) = self.reader.watermarks()?;
        if let Some(head) = head.filter(|head| *head > high) {
            return Err(self.changed(format!(
                "the store stands at offset {head}, but the partition ends at {high}"
            )));
        }
        if self.restore_until > high {
            // What is there now would be read for its keys only, and never be handled.
            return Err(self.changed(format!(
                "the group has committed offset {}, but the partition ends at {high}",
                self.restore_until
            )));
        }
        if let Some(head) = head.filter(|head| *head < low) {
            tracing::warn!(
                partition = %self.partition(), from = %head, to = %low,
                "records were deleted before they were handled: up to {} of them",
                low.get() - head.get(),
            );
        }
        Ok(())
    }

    fn changed(&self, what: String) -> Error {
        Error::TopicChanged {
            partition: self.partition().clone(),
            what,
        }
    }

    /// The next record to handle. What needs no handler is settled on the way.
    pub(super) fn next(&mut self) -> Result<Step, Error> {
        loop {
            if self.stop.is_set() {
                return Ok(Step::Stopped);
            }
            if self.cursor == self.window.len() {
                self.refill()?;
                continue;
            }
            let index = self.prepared_to - self.window.len() + self.cursor;
            if let Some(step) = self.decide(index)? {
                return Ok(step);
            }
        }
    }

    /// Prepares the next window of the batch, or reads the next batch.
    fn refill(&mut self) -> Result<(), Error> {
        self.window.clear();
        self.keys.clear();
        (self.cursor, self.answer) = (0, 0);
        let batch = match &self.batch {
            Some(batch) if self.prepared_to < batch.len() => Arc::clone(batch),
            batch => {
                let empty = batch.as_ref().is_some_and(|batch| batch.len() == 0);
                if self.restoring.is_some() && self.has_reached_restored(empty) && !self.restored()
                {
                    return Ok(());
                }
                self.shared.count(&mut self.counts);
                // Before the read: librdkafka's memory is free while it is waited for.
                self.batch = None;
                self.prepared_to = 0;
                let batch = self.reader.read(READ_RECORDS_MAX, READ_WAIT)?;
                self.batch = Some(Arc::clone(&batch));
                batch
            }
        };
        let to = (self.prepared_to + WINDOW).min(batch.len());
        for record in (self.prepared_to..to).filter_map(|index| batch.record(index)) {
            let (identity, no_key) = match self.settings.recipe.identify(&record) {
                Ok(Some(identity)) => (Some(identity), None),
                Ok(None) => (None, Some(NoIdentity::Missing)),
                Err(reason) => (None, Some(reason)),
            };
            let candidate = self.ledger.candidate_of(&record, identity.as_ref());
            self.keys.extend(candidate.fingerprint);
            self.window.push(Prepared { candidate, no_key });
        }
        self.prepared_to = to;
        self.looked_at = Some(self.ledger.lookup(&self.keys, &mut self.found)?);
        Ok(())
    }

    /// Decides about the record under the cursor and moves the cursor behind it.
    fn decide(&mut self, index: usize) -> Result<Option<Step>, Error> {
        let Some(prepared) = self.window.get_mut(self.cursor) else {
            return Ok(None);
        };
        let (candidate, no_key) = (prepared.candidate, prepared.no_key.take());
        let mark = match candidate.fingerprint {
            Some(_) => self.found.get(self.answer).copied().flatten(),
            None => None,
        };
        if candidate.offset < self.position.get() {
            self.pass(&candidate)?;
            self.advance(&candidate);
            return Ok(None);
        }
        if candidate.offset < self.restore_until.get() {
            self.restore(&candidate, mark)?;
            self.advance(&candidate);
            return Ok(None);
        }
        if !self.restored() {
            return Ok(None);
        }
        if self.shared.is_restoring() {
            // Its first may be in a stretch of another partition that is not read yet.
            self.stop.sleep(RESTORE_WAIT);
            return Ok(None);
        }
        if let Some(reason) = no_key {
            return self.keyless(index, candidate, reason).map(Some);
        }
        let look = match mark {
            Some(mark) => self.ledger.known(&candidate, mark, true),
            None => self.ledger.claim(&candidate, self.looked_at)?,
        };
        match look {
            Look::New => {
                self.advance(&candidate);
                Ok(self.work(index, candidate, Decision::New).map(Step::Handle))
            }
            Look::Known {
                decision,
                mark,
                durable,
            } => self.copy(index, candidate, decision, mark, durable),
            Look::Busy => {
                // Its holder may itself wait for one of ours: those must become durable first.
                self.ledger.urge();
                // Not forever: a stop must be noticed, and then the record is left for later.
                let _free = self.ledger.wait_free(&candidate, READ_WAIT);
                Ok(None)
            }
        }
    }

    fn advance(&mut self, candidate: &Candidate) {
        self.cursor += 1;
        if candidate.fingerprint.is_some() {
            self.answer += 1;
        }
    }

    fn work(&self, index: usize, candidate: Candidate, decision: Decision) -> Option<Work> {
        let batch = Arc::clone(self.batch.as_ref()?);
        let in_doubt = self.doubt.now();
        Some(Work {
            index,
            batch,
            candidate,
            decision,
            attempt: 1,
            in_doubt,
        })
    }

    /// A record below the position: settled in this lease or before it. The last one below the
    /// head proves that the topic is still the same.
    fn pass(&mut self, candidate: &Candidate) -> Result<(), Error> {
        self.counts.add(Decision::Redelivery);
        let head = self.ledger.lease().head;
        let next = head.map_or(NextOffset::ZERO, |head| head.next);
        match head.and_then(|head| head.anchor) {
            Some(anchor) if anchor.offset != candidate.offset => Ok(()),
            Some(anchor) if candidate.is_at(&anchor) => {
                // The topic is the same, so the head holds: without news of it a group that was
                // set back would show lag until the next new record.
                let partition = self.partition().clone();
                self.shared.committed(vec![Committed { partition, next }]);
                Ok(())
            }
            Some(_) => Err(self.changed(format!(
                "the record at offset {} is another than the one that was handled",
                candidate.offset
            ))),
            None => Ok(()),
        }
    }

    fn restore(&mut self, candidate: &Candidate, mark: Option<Mark>) -> Result<(), Error> {
        self.position = NextOffset::after(candidate.offset);
        self.counts.restored += 1;
        if mark.is_some() || candidate.fingerprint.is_none() {
            return Ok(self.ledger.skip(candidate)?);
        }
        let fill = self.ledger.mark_only(candidate)?;
        if fill.bytes >= UNIT_BYTES_MAX {
            self.wait_clean();
        }
        Ok(())
    }

    /// Ends the restore, if one is under way; says whether it is over. Its keys must be durable
    /// first: only then does a look-up find them.
    fn restored(&mut self) -> bool {
        if self.restoring.is_some() {
            self.wait_clean();
            if self.ledger.wait_clean(Duration::ZERO) != Wait::Done {
                // A stop, or the end of the lease: nothing is decided any more.
                self.stop.sleep(RESTORE_WAIT);
                return false;
            }
            self.restoring = None;
        }
        true
    }

    /// Whether nothing is left to be restored. A gap before the committed offset (a transaction
    /// marker, compaction) never comes as a record, and no partition is handled while one of them
    /// is being restored: so a silence ends it too, where the group stands at the partition's end.
    fn has_reached_restored(&mut self, empty: bool) -> bool {
        if self.position >= self.restore_until {
            return true;
        }
        if !empty {
            self.silent_since = None;
            return false;
        }
        let since = *self.silent_since.get_or_insert_with(Instant::now);
        if since.elapsed() < RESTORE_SILENCE {
            return false;
        }
        self.silent_since = None;
        // The answer also says that the broker can be reached: else its silence means nothing.
        self.reader
            .watermarks()
            .is_ok_and(|(_, high)| high <= self.restore_until)
    }

    fn keyless(
        &mut self,
        index: usize,
        candidate: Candidate,
        reason: NoIdentity,
    ) -> Result<Step, Error> {
        match self.settings.missing_key {
            MissingKey::PassThrough => {
                self.advance(&candidate);
                let work = self.work(index, candidate, Decision::MissingKey);
                Ok(work.map_or(Step::Stopped, Step::Handle))
            }
            MissingKey::Reject => Err(Error::MissingKey {
                at: self.coordinates(candidate.offset),
                source: reason,
            }),
        }
    }

    /// A record whose key is known: passed over, as far as the policy allows.
    fn copy(
        &mut self,
        index: usize,
        candidate: Candidate,
        decision: Decision,
        mark: Mark,
        durable: bool,
    ) -> Result<Option<Step>, Error> {
        if decision == Decision::Mismatch && self.settings.mismatch == Mismatch::Stop {
            let heads = self.ledger.engine().store().heads();
            let first = heads
                .get(mark.id.0 as usize)
                .map_or(self.partition(), |(name, _)| name);
            return Err(Error::Mismatch {
                at: self.coordinates(candidate.offset),
                first: Coordinates::new(first.clone(), mark.offset),
            });
        }
        if self.shows_copies && !durable {
            // An answer must not come from a mark that a crash could still undo.
            self.wait_clean();
            return Ok(None);
        }
        let result = match (self.shows_copies, candidate.fingerprint) {
            (true, Some(key)) => self.ledger.engine().store().result(&key, &mark)?,
            _ => None,
        };
        self.advance(&candidate);
        self.ledger.skip(&candidate)?;
        self.position = NextOffset::after(candidate.offset);
        self.counts.add(decision);
        let shown = self
            .shows_copies
            .then(|| self.work(index, candidate, decision))
            .flatten();
        Ok(shown.map(|work| Step::Copy(work, result)))
    }

    fn coordinates(&self, offset: i64) -> Coordinates {
        Coordinates::new(self.partition().clone(), offset)
    }

    /// What a handler is shown of a record.
    pub(super) fn delivery<'a>(&'a self, work: &Work, record: Record<'a>) -> Delivery<'a> {
        Delivery {
            record,
            attempt: work.attempt,
            in_doubt: work.in_doubt,
            recipe: &self.settings.recipe,
            hasher: self.ledger.hasher(),
        }
    }

    /// The effect has happened. Returns when another may: at most so many are uncommitted.
    pub(super) fn done(&mut self, work: &Work, result: Option<Box<[u8]>>) -> Result<(), Error> {
        let fill = self.ledger.done_fill(&work.candidate, result)?;
        self.position = NextOffset::after(work.candidate.offset);
        self.counts.add(work.decision);
        if work.in_doubt {
            self.counts.in_doubt += 1;
        }
        self.doubt.step();
        let max = self.settings.uncommitted_records_max;
        if fill.open == max.div_ceil(2) {
            // Half is written while the other half is filled.
            self.ledger.urge();
        }
        if fill.bytes >= UNIT_BYTES_MAX {
            self.wait_clean();
        } else if fill.uncommitted >= max {
            self.ledger.urge();
            // A stop need not be waited for: no effect follows, and the end commits.
            while self.ledger.wait_uncommitted(max / 2, READ_WAIT) == Wait::TimedOut
                && !self.stop.is_set()
            {
                self.ledger.urge();
            }
        }
        Ok(())
    }

    pub(super) fn retried(&mut self) {
        self.counts.retried += 1;
    }

    /// The record was not handled: its key is free again.
    pub(super) fn release(&self, work: &Work) {
        self.ledger.release(&work.candidate);
    }

    /// Waits until all that was settled is durable or never will be, or until a stop.
    fn wait_clean(&self) {
        self.ledger.urge();
        while self.ledger.wait_clean(READ_WAIT) == Wait::TimedOut && !self.stop.is_set() {
            self.ledger.urge();
        }
    }

    /// Ends the lane: commits what is left, and closes the lease in order.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.shared.count(&mut self.counts);
        // The reader first: nobody else may read the partition's queue while it is held.
        drop(self.reader);
        if let Some(committed) = self.ledger.finish()? {
            self.shared.committed(vec![committed]);
        }
        Ok(())
    }
}
