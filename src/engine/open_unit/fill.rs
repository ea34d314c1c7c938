//! How long a unit may grow.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use super::super::settle::Settle;
use super::{Inner, OpenUnit, Settled, Wake};

/// A unit that has grown to this many bytes is committed at once. It may grow on until it is.
const UNIT_BYTES_MAX: usize = 40 << 10;
/// The same for what it sends.
const OUTBOX_BYTES_MAX: usize = 1 << 20;
/// A unit is committed before it grows beyond this: below the store's bound (see
/// `store::sled::log`), and above the 108 KiB of a caller that counts by itself.
const OWN_UNIT_BYTES_MAX: usize = 112 << 10;
/// What one gap may cost in it.
const GAP_BYTES: usize = 12;
/// What one key costs in a unit, without its result.
const ENTRY_BYTES: usize = 26;
/// How often a commit is asked for by one who waits for room.
const URGE_EVERY: Duration = Duration::from_millis(5);

/// What the unit holds after a record was added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) uncommitted: usize,
    /// Effects in the open unit, of those.
    pub(crate) open: usize,
    /// Effects that a death of the process would repeat.
    pub(crate) at_risk: usize,
    /// With this record the unit has become one to be committed at once.
    pub(crate) filled: bool,
    /// The first of its kind in the unit: its deadline begins now.
    pub(crate) first: bool,
}

/// Whether a unit is to be committed at once.
pub(super) fn is_due(bytes: usize, outbox_bytes: usize) -> bool {
    bytes >= UNIT_BYTES_MAX || outbox_bytes >= OUTBOX_BYTES_MAX
}

/// What an entry with such a result takes.
pub(in crate::engine) fn entry_bytes(result: Option<&[u8]>) -> usize {
    ENTRY_BYTES + result.map_or(0, |result| result.len() + 8)
}

impl Inner {
    /// Whether there is room for so many bytes more; an empty unit has room for any.
    fn has_room(&self, bytes: usize) -> bool {
        // Positions may take up to eight bytes more than is counted for them.
        let positions = 8 * (self.entries.len() + 1);
        let gaps = GAP_BYTES * (self.held.len() + self.gaps.iter().len());
        let all = self.bytes + positions + gaps + bytes;
        let sends = self.outbox_bytes < OUTBOX_BYTES_MAX;
        self.bytes == 0 || all <= OWN_UNIT_BYTES_MAX && sends
    }
}

impl OpenUnit {
    /// Whether there is room for a record.
    pub(in crate::engine) fn has_room(&self, record: &Settle) -> bool {
        self.inner().has_room(record.bytes_max())
    }

    /// The unit, once there is room for a record in it, or once it is closed.
    pub(super) fn with_room(&self, record: &Settled, wake: &Wake) -> MutexGuard<'_, Inner> {
        let entry = record.entry.as_ref();
        let bytes = entry.map_or(0, |entry| entry_bytes(entry.result.as_deref()));
        let mut inner = self.inner();
        while !inner.closed && !inner.has_room(bytes) {
            inner.crowded = true;
            wake.urge();
            inner = self
                .changed
                .wait_timeout(inner, URGE_EVERY)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        inner
    }
}
