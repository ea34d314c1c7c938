//! One partition's work, in order: read, decide, hand out what is new, settle what comes back.
//!
//! Both ways to consume are written on it: `run` drives it with a handler, the pull form with
//! claims that are answered from elsewhere.

mod decide;
mod expired;
mod known;
mod restore;
mod settle;
#[cfg(feature = "postgres")]
mod together;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::{Duration, Instant};

use self::restore::Progress;
use crate::dead_letter::origin;
use crate::engine::{Candidate, Ledger, Moment};
use crate::error::Error;
use crate::key::{Fingerprint, Fingerprinter, NoIdentity};
use crate::pipeline::doubt::Doubt;
use crate::pipeline::report::Counts;
use crate::pipeline::settings::{READ_RECORDS_MAX, Settings};
use crate::pipeline::shared::{Restoring, Shared};
use crate::pipeline::stop::Stop;
use crate::pipeline::work::{Context, Work};
use crate::record::{NextOffset, Record, TopicPartition};
use crate::source::{Batch, Reader};
use crate::store::{Anchor, Gaps, Mark};

/// How long one read waits for records: how late a stop is noticed.
const READ_WAIT: Duration = Duration::from_millis(50);
/// How often a commit is asked for by one who waits for it.
const URGE_EVERY: Duration = Duration::from_millis(5);
/// Records decided about at once. Few, so that what a look-up said is rarely old when it is used.
const WINDOW: usize = 256;

/// What a lane does next.
pub(in crate::pipeline) enum Step {
    /// A record to see through.
    Work(Work),
    /// A record that waits for another with its key, where the lane need not wait with it.
    Parked(Work),
    /// Nothing has come, or nothing may be handed out yet.
    Idle,
    /// There is more, but others are under way that must have their turn.
    More,
    /// The partition is given up.
    Stopped,
}

/// One record of the window, as far as it is decided without a claim.
struct Prepared {
    candidate: Candidate,
    no_key: Option<NoIdentity>,
    /// For a letter that comes back.
    origin: Option<Arc<Fingerprinter>>,
}

pub(crate) struct Lane {
    ledger: Ledger,
    reader: Box<dyn Reader>,
    context: Arc<Context>,
    shared: Arc<Shared>,
    /// Everything below has been taken in; what comes again from there is passed over.
    position: NextOffset,
    /// But for these: what was left undone below the head, as far as reading has not come to it.
    open: Gaps,
    /// Where the lowest of them began when the lane did.
    undone_at_start: Option<NextOffset>,
    /// Behind the last record that was decided about.
    read_to: NextOffset,
    /// What the group had committed.
    committed: NextOffset,
    /// How long a read waits for records.
    patience: Duration,
    /// Counts the records that were taken in.
    taken: u64,
    /// When a commit was last asked for, by one who waits for it.
    urged_at: Instant,
    /// Below, keys are marked without a handler.
    restore_until: NextOffset,
    /// Until that is done.
    restoring: Option<Restoring>,
    progress: Progress,
    /// The highest record taken in.
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
    /// Where the partition's log began, once anything in the store has expired.
    forgets_from: Option<NextOffset>,
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
        let store = beginning.ledger.engine().store();
        let open = store.gaps(lease.id);
        let may_lack = store.may_lack_kept(lease.id);
        let permits = shared.permits().cloned();
        let topic = beginning.ledger.partition().topic();
        let replays = settings.replay_from.iter().any(|from| from == topic);
        let context = Context {
            partition: beginning.ledger.partition().clone(),
            settings,
            hasher: Arc::new(beginning.ledger.hasher().clone()),
            replays,
            stop,
            settled_to: AtomicI64::new(0),
            permits,
        };
        Self {
            position: lease.head.map_or(NextOffset::ZERO, |head| head.next),
            undone_at_start: open.first(),
            read_to: NextOffset::ZERO,
            committed: beginning.committed.unwrap_or_default(),
            patience: READ_WAIT,
            taken: 0,
            urged_at: Instant::now(),
            restore_until: beginning.restore_until,
            restoring: beginning.restoring,
            progress: Progress::default(),
            last: None,
            asked_for: beginning.asked_for,
            unclear: false,
            doubt: Doubt::new(&lease, &open, beginning.committed, may_lack),
            open,
            shows_copies: beginning.shows_copies,
            ledger: beginning.ledger,
            reader: beginning.reader,
            context: Arc::new(context),
            shared,
            counts: Counts::default(),
            batch: None,
            prepared_to: 0,
            window: Vec::with_capacity(WINDOW),
            keys: Vec::with_capacity(WINDOW),
            found: Vec::with_capacity(WINDOW),
            cursor: 0,
            answer: 0,
            looked_at: None,
            forgets_from: None,
        }
    }

    pub(in crate::pipeline) fn partition(&self) -> &TopicPartition {
        self.ledger.partition()
    }

    pub(in crate::pipeline) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// How many records were taken in so far.
    pub(in crate::pipeline) fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether a read waits for records; not while others are under way.
    pub(in crate::pipeline) fn wait_for_records(&mut self, wait: bool) {
        self.patience = if wait { READ_WAIT } else { Duration::ZERO };
    }

    /// What ends the consumer, while this lane still has work under way.
    pub(in crate::pipeline) fn fail(&self, error: Error) {
        self.shared.fail(error);
    }

    /// Whether the partition is what the store knows: it must reach up to the head.
    pub(in crate::pipeline) fn check_topic(&mut self) -> Result<(), Error> {
        let head = self.ledger.lease().head.map(|head| head.next);
        if head.is_none() && self.restoring.is_none() && !self.doubt.is_any() {
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
        let done = self.open.first().or(head);
        if let Some(done) = done.filter(|done| *done < low) {
            tracing::warn!(
                partition = %self.partition(), from = %done, to = %low,
                "records were deleted before they were handled: up to {} of them",
                low.get() - done.get(),
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
            if self.context.stop.is_set() {
                return Ok(Step::Stopped);
            }
            if self.cursor == self.window.len() {
                if !self.refill()? {
                    return Ok(Step::Idle);
                }
                if self.patience.is_zero() || self.context.settings.transacts {
                    return Ok(Step::More);
                }
                continue;
            }
            let index = self.prepared_to - self.window.len() + self.cursor;
            if let Some(step) = self.decide(index)? {
                return Ok(step);
            }
        }
    }

    /// Prepares the next window of the batch, or reads the next batch. `false` where nothing came.
    fn refill(&mut self) -> Result<bool, Error> {
        self.window.clear();
        self.keys.clear();
        if self.is_held_up() {
            return Ok(false);
        }
        (self.cursor, self.answer) = (0, 0);
        let batch = match &self.batch {
            Some(batch) if self.prepared_to < batch.len() => Arc::clone(batch),
            batch => {
                let empty = batch.as_ref().is_some_and(|batch| batch.len() == 0);
                if self.restoring.is_some()
                    && self.has_reached_restored(empty)
                    && !self.restored()?
                {
                    return Ok(false);
                }
                self.shared.count(&mut self.counts);
                // Before the read: librdkafka's memory is free while it is waited for.
                self.batch = None;
                self.prepared_to = 0;
                let batch = self.reader.read(READ_RECORDS_MAX, self.patience)?;
                self.batch = Some(Arc::clone(&batch));
                batch
            }
        };
        let to = (self.prepared_to + WINDOW).min(batch.len());
        for record in (self.prepared_to..to).filter_map(|index| batch.record(index)) {
            let prepared = prepare(&self.ledger, &self.context, &record);
            self.keys.extend(prepared.candidate.fingerprint);
            self.window.push(prepared);
        }
        self.prepared_to = to;
        self.looked_at = Some(self.ledger.lookup(&self.keys, &mut self.found)?);
        Ok(!self.window.is_empty())
    }
}

/// Finds a record's identity: that of its first place, where it is a letter that comes back.
fn prepare(ledger: &Ledger, context: &Context, record: &Record<'_>) -> Prepared {
    let first = context.replays.then(|| origin(record)).flatten();
    let seen = first.map_or(*record, |first| first.of(*record));
    let (identity, no_key) = match context.settings.recipe.identify(&seen) {
        Ok(Some(identity)) => (Some(identity), None),
        Ok(None) => (None, Some(NoIdentity::Missing)),
        Err(reason) => (None, Some(reason)),
    };
    let origin = first.map(|first| {
        let place = TopicPartition::new(first.topic, first.partition);
        Arc::new(ledger.engine().hasher(&place))
    });
    let hasher = origin.as_deref().unwrap_or(ledger.hasher());
    Prepared {
        candidate: ledger.candidate_of(record, identity.as_ref(), hasher),
        no_key,
        origin,
    }
}
