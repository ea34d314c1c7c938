//! The unit under way of one lease: filled by whoever works on the partition, taken by whoever
//! commits.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::record::{NextOffset, TopicPartition};
use crate::store::{Anchor, CommitUnit, Entry, HolderId, Lease, PartitionId};

/// A unit that has grown to this many bytes is committed at once. With the largest result on top
/// it stays below the store's bound (see `store::sled::log`).
pub(crate) const UNIT_BYTES_MAX: usize = 48 << 10;
/// Where nobody but the caller commits, a unit is committed before it grows beyond this: below the
/// store's bound, and above the 108 KiB of a caller that counts by itself.
const OWN_UNIT_BYTES_MAX: usize = 112 << 10;
/// What one key costs in a unit, without its result.
const ENTRY_BYTES: usize = 26;

#[derive(Debug)]
struct Inner {
    previous: NextOffset,
    next: NextOffset,
    entries: Vec<Entry>,
    bytes: usize,
    max_timestamp_ms: i64,
    anchor: Option<Anchor>,
    /// When the oldest effect in the unit happened.
    effect_at: Option<Instant>,
    /// When the head first moved without one.
    moved_at: Option<Instant>,
    /// Effects whose marks are not durable: in this unit or in one being written.
    uncommitted: usize,
    /// Effects in this unit, of those.
    open: usize,
    /// A unit is being written.
    writing: bool,
    /// Nothing of this lease is committed any more.
    closed: bool,
}

/// The state of one lease that its worker and the committer share.
#[derive(Debug)]
pub(crate) struct OpenUnit {
    partition: TopicPartition,
    id: PartitionId,
    epoch: u32,
    holder: HolderId,
    inner: Mutex<Inner>,
    changed: Condvar,
}

/// One settled record, as it enters a unit.
pub(super) struct Settled {
    pub(super) offset: i64,
    pub(super) timestamp_ms: i64,
    pub(super) anchor_digest: u64,
    /// `None` for a record that was skipped, or handled without a key.
    pub(super) entry: Option<Entry>,
    /// Whether a handler ran.
    pub(super) effect: bool,
}

/// What the unit holds after a record was added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) uncommitted: usize,
    /// Effects in the open unit, of those.
    pub(crate) open: usize,
    pub(crate) bytes: usize,
    /// The first of its kind in the unit: its deadline begins now.
    pub(crate) first: bool,
}

fn entry_bytes(entry: &Entry) -> usize {
    ENTRY_BYTES + entry.result.as_ref().map_or(0, |result| result.len() + 8)
}

/// Why a record was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsettled {
    /// The lease is over.
    Closed,
    /// The record, or one behind it, was settled before.
    BelowHead,
}

impl OpenUnit {
    pub(super) fn new(partition: TopicPartition, lease: &Lease, holder: HolderId) -> Self {
        let head = lease.head.map_or(NextOffset::ZERO, |head| head.next);
        let inner = Inner {
            previous: head,
            next: head,
            entries: Vec::new(),
            bytes: 0,
            max_timestamp_ms: -1,
            anchor: None,
            effect_at: None,
            moved_at: None,
            uncommitted: 0,
            open: 0,
            writing: false,
            closed: false,
        };
        Self {
            partition,
            id: lease.id,
            epoch: lease.epoch,
            holder,
            inner: Mutex::new(inner),
            changed: Condvar::new(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn partition(&self) -> &TopicPartition {
        &self.partition
    }

    pub(super) fn holder(&self) -> HolderId {
        self.holder
    }

    /// Where a store that has no head yet begins.
    pub(super) fn start_at(&self, start: NextOffset) {
        let mut inner = self.inner();
        inner.previous = start;
        inner.next = start;
    }

    /// Whether there is room for a record; an empty unit has room for any.
    pub(super) fn has_room(&self, entry: Option<&Entry>) -> bool {
        let inner = self.inner();
        // Positions may take up to eight bytes more than is counted for them.
        let positions = 8 * (inner.entries.len() + 1);
        let all = inner.bytes + positions + entry.map_or(0, entry_bytes);
        inner.bytes == 0 || all <= OWN_UNIT_BYTES_MAX
    }

    /// Adds a record.
    pub(super) fn settle(&self, record: Settled) -> Result<Fill, Unsettled> {
        let mut inner = self.inner();
        if inner.closed {
            return Err(Unsettled::Closed);
        }
        // A unit that moves nothing is not written. One that does takes its last record again.
        let written_anyhow = i64::from(inner.next != inner.previous);
        if record.offset < inner.next.get() - written_anyhow {
            return Err(Unsettled::BelowHead);
        }
        inner.next = inner.next.max(NextOffset::after(record.offset));
        inner.max_timestamp_ms = inner.max_timestamp_ms.max(record.timestamp_ms);
        inner.anchor = Some(Anchor {
            offset: record.offset,
            timestamp_ms: record.timestamp_ms,
            digest: record.anchor_digest,
        });
        let since = if record.effect {
            &mut inner.effect_at
        } else {
            &mut inner.moved_at
        };
        let first = since.is_none();
        if first {
            *since = Some(Instant::now());
        }
        if record.effect {
            inner.uncommitted += 1;
            inner.open += 1;
        }
        if let Some(entry) = record.entry {
            inner.bytes += entry_bytes(&entry);
            inner.entries.push(entry);
        }
        Ok(Fill {
            uncommitted: inner.uncommitted,
            open: inner.open,
            bytes: inner.bytes,
            first,
        })
    }

    /// When the unit must be on its way: `linger` after its oldest effect, or `idle` after the
    /// head moved without one.
    pub(super) fn due(&self, linger: Duration, idle: Duration) -> Option<Instant> {
        let inner = self.inner();
        let effect = inner.effect_at.map(|at| at + linger);
        let moved = inner.moved_at.map(|at| at + idle);
        [effect, moved].into_iter().flatten().min()
    }

    /// Whether there are effects that wait to be committed.
    pub(super) fn has_effects(&self) -> bool {
        self.inner().effect_at.is_some()
    }

    /// Takes what there is, with the number of effects in it. `None` where nothing moved.
    pub(super) fn take(&self) -> Option<(CommitUnit, usize)> {
        let mut inner = self.inner();
        if inner.closed || inner.next == inner.previous {
            return None;
        }
        let unit = CommitUnit {
            id: self.id,
            epoch: self.epoch,
            previous: inner.previous,
            next: inner.next,
            max_timestamp_ms: inner.max_timestamp_ms,
            anchor: inner.anchor,
            entries: std::mem::take(&mut inner.entries),
        };
        inner.previous = inner.next;
        inner.bytes = 0;
        inner.max_timestamp_ms = -1;
        inner.effect_at = None;
        inner.moved_at = None;
        inner.writing = true;
        let effects = std::mem::take(&mut inner.open);
        Some((unit, effects))
    }

    /// A unit with `effects` effects is durable.
    pub(super) fn hardened(&self, effects: usize) {
        let mut inner = self.inner();
        inner.uncommitted -= effects.min(inner.uncommitted);
        inner.writing = false;
        drop(inner);
        self.changed.notify_all();
    }

    /// Ends the lease and gives back the keys that will not be committed.
    pub(super) fn close(&self) -> Vec<Entry> {
        let mut inner = self.inner();
        inner.closed = true;
        // Nothing is due any more: a committer that waits for it would not wait at all.
        inner.effect_at = None;
        inner.moved_at = None;
        let entries = std::mem::take(&mut inner.entries);
        drop(inner);
        self.changed.notify_all();
        entries
    }

    /// Whether every record that was settled is durable.
    pub(super) fn is_clean(&self) -> bool {
        let inner = self.inner();
        !inner.closed && !inner.writing && inner.next == inner.previous
    }

    /// Waits until at most `limit` effects are uncommitted, for at most `patience`.
    pub(super) fn wait_uncommitted(&self, limit: usize, patience: Duration) -> Wait {
        let busy = |inner: &mut Inner| !inner.closed && inner.uncommitted > limit;
        self.wait(busy, patience)
    }

    /// Waits until all that was settled is durable.
    pub(super) fn wait_clean(&self, patience: Duration) -> Wait {
        let busy =
            |inner: &mut Inner| !inner.closed && (inner.writing || inner.next != inner.previous);
        self.wait(busy, patience)
    }

    fn wait(&self, mut busy: impl FnMut(&mut Inner) -> bool, patience: Duration) -> Wait {
        let (mut inner, timeout) = self
            .changed
            .wait_timeout_while(self.inner(), patience, &mut busy)
            .unwrap_or_else(PoisonError::into_inner);
        if inner.closed {
            Wait::Closed
        } else if timeout.timed_out() && busy(&mut inner) {
            Wait::TimedOut
        } else {
            Wait::Done
        }
    }
}

/// How waiting for a commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Done,
    TimedOut,
    /// The lease is over: fenced, failed or given up.
    Closed,
}
