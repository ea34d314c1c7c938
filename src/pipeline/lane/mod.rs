//! One partition's work, in order: read, decide, hand out what is new, settle what comes back.
//!
//! Both ways to consume are written on it: `run` drives it with a handler, the pull form with
//! claims that are answered from elsewhere.

mod decide;
mod restore;
mod settle;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::claim::Decision;
use crate::engine::{Candidate, Ledger, Moment};
use crate::error::Error;
use crate::key::{Fingerprint, NoIdentity};
use crate::pipeline::doubt::Doubt;
use crate::pipeline::report::Counts;
use crate::pipeline::settings::{READ_RECORDS_MAX, Settings};
use crate::pipeline::shared::{Restoring, Shared};
use crate::pipeline::stop::Stop;
use crate::record::{NextOffset, Record, TopicPartition};
use crate::source::{Batch, Reader};
use crate::store::{Anchor, Mark};

/// How long one read waits for records: how late a stop is noticed.
const READ_WAIT: Duration = Duration::from_millis(50);
/// Records decided about at once. Few, so that what a look-up said is rarely old when it is used.
const WINDOW: usize = 256;

/// What a lane does next.
pub(in crate::pipeline) enum Step {
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
    pub(in crate::pipeline) candidate: Candidate,
    pub(in crate::pipeline) decision: Decision,
    pub(in crate::pipeline) attempt: u32,
    pub(in crate::pipeline) in_doubt: bool,
}

impl Work {
    pub(in crate::pipeline) fn record(&self) -> Option<Record<'_>> {
        self.batch.record(self.index)
    }

    pub(in crate::pipeline) fn batch(&self) -> &Arc<dyn Batch> {
        &self.batch
    }

    pub(in crate::pipeline) fn index(&self) -> usize {
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
    /// The record settled last.
    last: Option<Anchor>,
    /// The record that reading was begun at to see whether the topic is still the same.
    asked_for: Option<i64>,
    /// The record in hand may have taken effect, or not.
    unclear: bool,
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
    looked_at: Option<Moment>,
}

/// What a lane begins with.
pub(in crate::pipeline) struct Beginning {
    pub(in crate::pipeline) ledger: Ledger,
    pub(in crate::pipeline) reader: Box<dyn Reader>,
    pub(in crate::pipeline) committed: Option<NextOffset>,
    pub(in crate::pipeline) restore_until: NextOffset,
    /// Reading begins at this record although it is settled.
    pub(in crate::pipeline) asked_for: Option<i64>,
    pub(in crate::pipeline) restoring: Option<Restoring>,
    pub(in crate::pipeline) shows_copies: bool,
}

impl Lane {
    pub(in crate::pipeline) fn new(
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
            last: None,
            asked_for: beginning.asked_for,
            unclear: false,
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

    pub(in crate::pipeline) fn partition(&self) -> &TopicPartition {
        self.ledger.partition()
    }

    pub(in crate::pipeline) fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    pub(in crate::pipeline) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    pub(in crate::pipeline) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Whether the partition is what the store knows: it must reach up to the head.
    pub(in crate::pipeline) fn check_topic(&mut self) -> Result<(), Error> {
        let head = self.ledger.lease().head.map(|head| head.next);
        if head.is_none() && self.restoring.is_none() && !self.doubt.is_elsewhere() {
            return Ok(());
        }
        let (low, high) = self.reader.watermarks()?;
        self.doubt.ends_at(high);
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
    pub(in crate::pipeline) fn next(&mut self) -> Result<Step, Error> {
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
                if self.restoring.is_some()
                    && self.has_reached_restored(empty)
                    && !self.restored()?
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
}
