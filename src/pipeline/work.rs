//! A record that a lane has handed out, and what came of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::settings::{Ordering, Settings};
use super::stop::Stop;
use crate::claim::Decision;
use crate::dead_letter::Reason;
use crate::engine::{Candidate, Recorded};
use crate::error::Error;
use crate::handler::Delivery;
use crate::key::Fingerprinter;
use crate::record::{Coordinates, Record, TopicPartition};
use crate::source::Batch;

/// A record that has been handed out.
pub(crate) struct Work {
    pub(super) index: usize,
    pub(super) batch: Arc<dyn Batch>,
    pub(super) candidate: Candidate,
    pub(super) decision: Decision,
    pub(super) in_doubt: bool,
    /// Whether the key is its own: not while it waits for another with it.
    pub(super) claimed: bool,
    pub(super) errand: Errand,
    /// The hasher of where it was first, for a letter that comes back.
    pub(super) origin: Option<Arc<Fingerprinter>>,
    /// Counts what was taken in: how far behind the first of all it comes.
    pub(super) order: u64,
}

impl Work {
    pub(super) fn record(&self) -> Option<Record<'_>> {
        self.batch.record(self.index)
    }

    /// Whether its identity is that of another record in flight, which decides about it.
    pub(super) fn waits_for_another(&self) -> bool {
        !self.claimed && matches!(self.errand, Errand::Handle)
    }

    /// Whether its key is claimed for as long as it is under way.
    pub(super) fn is_claimed(&self) -> bool {
        self.claimed && matches!(self.errand, Errand::Handle)
    }

    /// Whether its place in the partition is held: a copy that is shown counts as done.
    pub(super) fn is_held(&self) -> bool {
        !matches!(self.errand, Errand::Show(_))
    }
}

/// What is to be done about it. Moved about for every record, so that what is rare is boxed.
pub(super) enum Errand {
    /// It is to be handled.
    Handle,
    /// A copy that counts as done already, to be shown with what its first one recorded.
    Show(Option<Vec<u8>>),
    /// It cannot be handled, for this reason: it goes to the dead letters.
    Bury(Reason, Box<Error>),
}

/// What came of it.
pub(super) struct Finished {
    pub(super) work: Work,
    pub(super) outcome: Outcome,
    /// Attempts that failed and were followed by another.
    pub(super) retried: u64,
    /// An attempt ended without saying whether its effect happened.
    pub(super) unclear: bool,
}

pub(super) enum Outcome {
    /// It took effect.
    Done(Recorded),
    /// Its letter is written.
    Buried,
    /// A copy was shown.
    Shown,
    /// It was not handled: the partition is given up, or nobody handles any more.
    Released,
    /// It cannot be handled, and this ends the consumer.
    Failed(Box<Error>),
}

/// What the futures of a lane need of it.
pub(crate) struct Context {
    pub(super) partition: TopicPartition,
    pub(super) settings: Arc<Settings>,
    pub(super) hasher: Arc<Fingerprinter>,
    /// Whether records may be letters that come back.
    pub(super) replays: bool,
    pub(super) stop: Arc<Stop>,
    /// Behind the highest record that was settled.
    pub(super) settled_to: AtomicI64,
    /// As many as may be handled at once in all partitions, where that is bounded.
    pub(super) permits: Option<Arc<Semaphore>>,
}

/// Held while a record is handled.
pub(super) struct Permit(
    #[expect(dead_code, reason = "held, not read")] pub(super) Option<OwnedSemaphorePermit>,
);

impl Context {
    /// What a handler is shown of a record.
    pub(super) fn delivery<'a>(
        &'a self,
        work: &'a Work,
        record: Record<'a>,
        attempt: u32,
    ) -> Delivery<'a> {
        Delivery {
            record,
            attempt,
            in_doubt: work.in_doubt,
            recipe: &self.settings.recipe,
            hasher: work.origin.as_ref().unwrap_or(&self.hasher),
            replayed: work.origin.is_some(),
        }
    }

    /// A place among those that are handled at once; `None` once nothing is any more.
    pub(super) async fn permit(&self) -> Option<Permit> {
        let Some(permits) = &self.permits else {
            return Some(Permit(None));
        };
        let permit = Arc::clone(permits).acquire_owned();
        tokio::select! {
            biased;
            () = self.given_up().cancelled() => None,
            permit = permit => Some(Permit(permit.ok())),
        }
    }

    /// Waits before the next attempt; says whether there is none.
    ///
    /// A stop ends the pause, where nothing behind the record was done: then it is left for later.
    /// Else another member would do that again: the record is tried for as long as a good part of
    /// the time that the stop may take.
    pub(super) async fn pause(&self, pause: Duration, offset: i64) -> bool {
        let end = tokio::time::Instant::now() + pause;
        tokio::select! {
            () = self.stop.token().cancelled() => {}
            () = tokio::time::sleep_until(end) => return false,
        }
        let behind = self.settled_to.load(Relaxed) > offset;
        let Some(patience) = self.stop.patience().filter(|_| behind) else {
            return true;
        };
        tokio::select! {
            biased;
            () = self.stop.late().cancelled() => true,
            () = tokio::time::sleep_until(patience.into()) => true,
            () = tokio::time::sleep_until(end) => false,
        }
    }

    fn in_order(&self) -> bool {
        self.settings.ordering == Ordering::Partition
    }

    /// Set when nothing new is begun, not even what others wait for.
    fn given_up(&self) -> &CancellationToken {
        if self.in_order() {
            self.stop.token()
        } else {
            self.stop.late()
        }
    }

    pub(super) fn coordinates(&self, offset: i64) -> Coordinates {
        Coordinates::new(self.partition.clone(), offset)
    }
}
