//! The unit under way of one lease: filled by whoever works on the partition, taken by whoever
//! commits.

#[cfg(feature = "postgres")]
mod back;
mod end;
mod fill;
mod journal;
mod wait;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

#[cfg(feature = "postgres")]
pub(super) use self::back::Before;
pub(crate) use self::fill::Fill;
pub(super) use self::fill::entry_bytes;
use self::fill::is_due;
use self::journal::Kept;
pub(crate) use self::wait::Wait;
use super::Wake;
use crate::key::Fingerprint;
use crate::outbox::Outgoing;
use crate::record::{NextOffset, TopicPartition};
use crate::store::{Anchor, CommitUnit, Entry, Gaps, HolderId, Lease, PartitionId, Store};

/// A record that is under way.
#[derive(Clone, Debug)]
struct Held {
    /// Whether it had been done and was forgotten.
    forgotten: bool,
    key: Option<Fingerprint>,
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Inner {
    previous: NextOffset,
    next: NextOffset,
    entries: Vec<Entry>,
    outbox: Vec<Outgoing>,
    bytes: usize,
    outbox_bytes: usize,
    max_timestamp_ms: i64,
    anchor: Option<Anchor>,
    /// What the store says is not done below the head, as far as the reader has not come to it.
    gaps: Gaps,
    /// Taken in and not settled.
    held: BTreeMap<i64, Held>,
    /// Something was settled, or a gap has gone, since the last unit.
    moved: bool,
    /// When the oldest effect in the unit happened.
    effect_at: Option<Instant>,
    /// When the head first moved without one.
    moved_at: Option<Instant>,
    /// Effects whose marks are not durable: in this unit or in one being written.
    uncommitted: usize,
    /// Effects in this unit, of those.
    open: usize,
    kept: Kept,
    /// A unit is being written.
    writing: bool,
    /// Its worker waits for this one to be taken.
    crowded: bool,
    /// Nothing of this lease is committed any more.
    closed: bool,
}

impl Inner {
    /// What lies below the head and is not settled.
    fn undone(&self) -> Gaps {
        let held = self.held.range(..self.next.get());
        self.gaps
            .with(held.map(|(offset, held)| (*offset, held.forgotten)))
    }
}

/// The state of one lease that its worker and the committer share.
#[derive(Debug)]
pub(crate) struct OpenUnit {
    partition: TopicPartition,
    id: PartitionId,
    epoch: u32,
    holder: HolderId,
    /// Nobody but its worker commits it.
    alone: AtomicBool,
    inner: Mutex<Inner>,
    changed: Condvar,
    /// The same, for one who waits in a future.
    told: Notify,
}

/// One settled record, as it enters a unit.
pub(super) struct Settled {
    pub(super) offset: i64,
    pub(super) timestamp_ms: i64,
    pub(super) anchor_digest: u64,
    /// `None` for a record that was skipped, or handled without a key.
    pub(super) entry: Option<Entry>,
    pub(super) outbox: Vec<Outgoing>,
    /// Whether a handler ran.
    pub(super) effect: bool,
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
    pub(super) fn new(
        partition: TopicPartition,
        lease: &Lease,
        gaps: Gaps,
        holder: HolderId,
    ) -> Self {
        let head = lease.head.map_or(NextOffset::ZERO, |head| head.next);
        let inner = Inner {
            previous: head,
            next: head,
            entries: Vec::new(),
            outbox: Vec::new(),
            bytes: 0,
            outbox_bytes: 0,
            max_timestamp_ms: -1,
            anchor: None,
            gaps,
            held: BTreeMap::new(),
            moved: false,
            effect_at: None,
            moved_at: None,
            uncommitted: 0,
            open: 0,
            kept: Kept::new(lease.head.map(|head| head.next)),
            writing: false,
            crowded: false,
            closed: false,
        };
        Self {
            partition,
            id: lease.id,
            epoch: lease.epoch,
            holder,
            alone: AtomicBool::new(false),
            inner: Mutex::new(inner),
            changed: Condvar::new(),
            told: Notify::new(),
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

    /// From here on its worker alone commits it.
    pub(super) fn be_alone(&self) {
        self.alone.store(true, Ordering::Release);
    }

    pub(super) fn is_alone(&self) -> bool {
        self.alone.load(Ordering::Acquire)
    }

    /// Where a store that has no head yet begins.
    pub(super) fn start_at(&self, start: NextOffset) {
        let mut inner = self.inner();
        inner.previous = start;
        inner.next = start;
    }

    /// A record is under way: what lies behind it may be settled first. All below has been read.
    pub(super) fn hold(&self, offset: i64, key: Option<Fingerprint>) {
        let mut inner = self.inner();
        let forgotten = inner.gaps.at(offset).is_some_and(|gap| gap.forgotten);
        inner.gaps.close_below(offset.saturating_add(1));
        inner.held.insert(offset, Held { forgotten, key });
    }

    /// Whether the record at an offset is under way.
    pub(super) fn is_held(&self, offset: i64) -> bool {
        self.inner().held.contains_key(&offset)
    }

    /// Behind the highest record that was settled.
    pub(super) fn settled_to(&self) -> NextOffset {
        self.inner().next
    }

    /// The lowest record that is not settled.
    pub(super) fn unfinished(&self) -> NextOffset {
        let inner = self.inner();
        let held = inner.held.keys().next().copied().and_then(NextOffset::new);
        let lowest = [Some(inner.next), held, inner.gaps.first()];
        lowest.into_iter().flatten().min().unwrap_or(inner.next)
    }

    /// Adds a record. Where others commit (`wake`) and there is no room for it, waits for them.
    pub(super) fn settle(&self, record: Settled, wake: Option<&Wake>) -> Result<Fill, Unsettled> {
        let mut inner = match wake {
            Some(wake) => self.with_room(&record, wake),
            None => self.inner(),
        };
        if inner.closed {
            return Err(Unsettled::Closed);
        }
        // A unit that moves nothing is not written. One that does takes its last record again.
        let written_anyhow = i64::from(inner.next != inner.previous);
        let held = inner.held.remove(&record.offset).is_some();
        if !held && record.offset < inner.next.get() - written_anyhow {
            return Err(Unsettled::BelowHead);
        }
        inner.moved = true;
        inner.max_timestamp_ms = inner.max_timestamp_ms.max(record.timestamp_ms);
        let behind = NextOffset::after(record.offset);
        if behind >= inner.next {
            inner.next = behind;
            // Reading has come past all of them.
            inner.gaps.close_below(record.offset);
            inner.anchor = Some(Anchor {
                offset: record.offset,
                timestamp_ms: record.timestamp_ms,
                digest: record.anchor_digest,
            });
        }
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
            inner.kept.at_risk += 1;
        }
        let was_due = is_due(inner.bytes, inner.outbox_bytes);
        inner.outbox_bytes += record.outbox.iter().map(Outgoing::bytes).sum::<usize>();
        inner.outbox.extend(record.outbox);
        if let Some(entry) = record.entry {
            inner.bytes += entry_bytes(entry.result.as_deref());
            inner.entries.push(entry);
        }
        Ok(Fill {
            uncommitted: inner.uncommitted,
            open: inner.open,
            at_risk: inner.kept.at_risk,
            filled: !was_due && is_due(inner.bytes, inner.outbox_bytes),
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
    pub(super) fn take(&self, store: &dyn Store) -> Option<(CommitUnit, usize)> {
        let mut inner = self.inner();
        if inner.closed || !inner.moved {
            return None;
        }
        self.keep(&mut inner, store);
        let gaps = inner.undone();
        let entries = std::mem::take(&mut inner.entries);
        let next = inner.next;
        inner.kept.taken(next, entries.len());
        let unit = CommitUnit {
            id: self.id,
            epoch: self.epoch,
            previous: inner.previous,
            next: inner.next,
            max_timestamp_ms: inner.max_timestamp_ms,
            anchor: inner.anchor,
            entries,
            gaps,
            outbox: std::mem::take(&mut inner.outbox),
        };
        inner.previous = inner.next;
        inner.moved = false;
        inner.bytes = 0;
        inner.outbox_bytes = 0;
        inner.max_timestamp_ms = -1;
        inner.effect_at = None;
        inner.moved_at = None;
        inner.writing = true;
        if std::mem::take(&mut inner.crowded) {
            self.changed.notify_all();
        }
        let effects = std::mem::take(&mut inner.open);
        Some((unit, effects))
    }

    /// A unit with `effects` effects is durable.
    pub(super) fn hardened(&self, effects: usize) {
        let mut inner = self.inner();
        inner.uncommitted -= effects.min(inner.uncommitted);
        inner.kept.hardened();
        inner.writing = false;
        drop(inner);
        self.changed.notify_all();
        self.told.notify_one();
    }

    /// Whether every record that was settled is durable.
    pub(super) fn is_clean(&self) -> bool {
        let inner = self.inner();
        !inner.closed && !inner.writing && !inner.moved
    }
}
