//! Which records may have taken effect without a mark.

use super::settings::UNCOMMITTED_RECORDS_MAX;
use crate::record::NextOffset;
use crate::store::Lease;

/// Counts down the records of a partition that are handed out in doubt.
///
/// A run that ends without order leaves at most [`UNCOMMITTED_RECORDS_MAX`] effects of a partition
/// without marks, and they are the first new records behind its head: work is in order. So that
/// many records are in doubt, and none behind them.
pub(super) struct Doubt(usize);

impl Doubt {
    pub(super) fn new(lease: &Lease, committed: Option<NextOffset>) -> Self {
        // Further than this store has come: somebody else worked there last, and how that ended
        // is not known here.
        let elsewhere = committed > lease.head.map(|head| head.next);
        Self(if lease.in_doubt || elsewhere {
            UNCOMMITTED_RECORDS_MAX
        } else {
            0
        })
    }

    /// Whether the next new record is in doubt.
    pub(super) fn now(&self) -> bool {
        self.0 > 0
    }

    /// A new record was handled.
    pub(super) fn step(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }
}
