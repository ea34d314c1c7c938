//! Which records may have taken effect without a mark.

use super::settings::UNCOMMITTED_RECORDS_MAX;
use crate::record::NextOffset;
use crate::store::Lease;

/// Which records of a partition are handed out in doubt.
///
/// A run of this store that ends without order leaves at most [`UNCOMMITTED_RECORDS_MAX`] effects of
/// a partition without marks, and they are the first new records behind its head: work is in order.
/// So that many are in doubt. Where another member was there last, and how that ended is not known,
/// everything is that was in the partition when this one took it.
pub(super) struct Doubt {
    left: usize,
    elsewhere: bool,
    /// Where the partition ended when it was taken, if another member was there last.
    end: NextOffset,
}

impl Doubt {
    pub(super) fn new(lease: &Lease, committed: Option<NextOffset>) -> Self {
        // Further than this store has come.
        let head = lease.head.map_or(NextOffset::ZERO, |head| head.next);
        let elsewhere = committed.is_some_and(|committed| committed > head);
        let left = if lease.in_doubt {
            UNCOMMITTED_RECORDS_MAX
        } else {
            0
        };
        Self {
            left,
            elsewhere,
            end: NextOffset::ZERO,
        }
    }

    /// Whether another member was there last.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.elsewhere
    }

    /// The partition ends here now.
    pub(super) fn ends_at(&mut self, high: NextOffset) {
        if self.elsewhere {
            self.end = high;
        }
    }

    /// Whether the new record at `offset` is in doubt.
    pub(super) fn covers(&self, offset: i64) -> bool {
        self.left > 0 || offset < self.end.get()
    }

    /// Whether records in doubt may be left: the lease before may have had effects on them, and the
    /// next one must say so.
    pub(super) fn is_open(&self) -> bool {
        self.left > 0
    }

    /// A new record was handled.
    pub(super) fn step(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
}
