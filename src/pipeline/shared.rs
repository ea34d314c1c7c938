//! What lanes, committer and polling thread share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::expiry::Room;
use super::report::{Counts, Report};
use super::settings::Settings;
use super::stop::Stop;
use crate::engine::Committed;
use crate::error::Error;
use crate::record::{NextOffset, TopicPartition};
use crate::source::Offsets;

/// How long the polling thread may need to hear of a loss, beside what it drains: it asks for the
/// group's offsets in a callback, up to 44 s, and the heartbeat behind that tells it.
const LOST_WAIT: Duration = Duration::from_secs(60);

/// What lanes, committer and polling thread share.
pub(crate) struct Shared {
    offsets: Mutex<Offsets>,
    report: Mutex<Report>,
    failure: Mutex<Option<Error>>,
    failed: AtomicBool,
    /// Partitions that are being restored.
    restoring: AtomicUsize,
    /// For those who handle a record, where that is bounded.
    permits: Option<Arc<Semaphore>>,
    /// Whether the group hears of positions from elsewhere.
    offsets_sent: bool,
    lost_wait: Duration,
    room: Room,
}

impl Shared {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            offsets: Mutex::new(Offsets::new(settings.offset_interval)),
            report: Mutex::default(),
            failure: Mutex::default(),
            failed: AtomicBool::new(false),
            restoring: AtomicUsize::new(0),
            permits: settings
                .concurrency_max
                .map(|max| Arc::new(Semaphore::new(max))),
            offsets_sent: settings.offsets_sent,
            lost_wait: LOST_WAIT + settings.drain_limit,
            room: Room::new(settings.retention),
        }
    }

    pub(super) fn permits(&self) -> Option<&Arc<Semaphore>> {
        self.permits.as_ref()
    }

    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    /// Whether the group hears of positions in transactions, before they are durable here.
    pub(super) fn sends_offsets(&self) -> bool {
        self.offsets_sent
    }

    pub(super) fn offsets(&self) -> MutexGuard<'_, Offsets> {
        self.offsets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count(&self, counts: &mut Counts) {
        if *counts != Counts::default() {
            self.report().counts.absorb(counts);
        }
    }

    pub(super) fn begin(&self, partition: &TopicPartition, committed: Option<NextOffset>) {
        self.offsets().begin(partition.clone(), committed);
    }

    /// Durable: only now may an offset follow.
    pub(super) fn committed(&self, committed: Vec<Committed>) {
        tracing::debug!(?committed, "durable");
        let mut offsets = self.offsets();
        let mut report = self.report();
        for done in committed {
            let position = report
                .positions
                .entry(done.partition.clone())
                .or_insert(done.next);
            *position = done.next.max(*position);
            // A plain commit could come late and set the group back behind a transaction, and a crash
            // would have what that sent be sent again.
            if !self.offsets_sent {
                offsets.reached(&done);
            }
        }
    }

    /// Whether a lane is fenced because its partition is another member's: where transactions carry
    /// the positions, that may be known before the lane is told to stop, which follows.
    pub(super) fn is_lost(&self, stop: &Stop) -> bool {
        self.offsets_sent && stop.sleep(self.lost_wait)
    }

    /// The first failure is the one that is reported; what follows is its echo.
    pub(super) fn fail(&self, error: Error) {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
        self.failed.store(true, Ordering::Release);
    }

    /// Whether a partition is being restored: its keys are not all known yet.
    pub(super) fn is_restoring(&self) -> bool {
        self.restoring.load(Ordering::Acquire) > 0
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    pub(super) fn take_failure(&self) -> Option<Error> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

/// One partition's restore, until dropped.
pub(super) struct Restoring(Arc<Shared>);

impl Restoring {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        shared.restoring.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(shared))
    }

    /// One more, where there is one.
    pub(super) fn as_long(shared: &Arc<Shared>) -> Option<Self> {
        shared.is_restoring().then(|| Self::new(shared))
    }
}

impl Drop for Restoring {
    fn drop(&mut self) {
        self.0.restoring.fetch_sub(1, Ordering::AcqRel);
    }
}
