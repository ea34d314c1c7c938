//! What is written at once.

use std::fmt;

use super::{Gaps, PartitionId};
use crate::key::Fingerprint;
use crate::outbox::Outgoing;
use crate::record::NextOffset;

/// One key that has been done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub fingerprint: Fingerprint,
    /// The offset of the record that took effect.
    pub offset: i64,
    /// The digest of its value.
    pub value_digest: u64,
    /// What its handler recorded for copies to be answered with.
    pub result: Option<Box<[u8]>>,
    /// Whether it went to the dead letters instead of taking effect.
    pub dead_lettered: bool,
    /// Whether it was done and then forgotten on purpose. It suppresses nothing any more; it stays
    /// so that a record below the head which shares its key is not taken for another topic's.
    pub forgotten: bool,
    /// Whether it was only read: another member did it, or gave it up.
    pub restored: bool,
}

/// How the last record below a head is known again, so that a topic that was deleted and created
/// again is not taken for its predecessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The record's offset.
    pub offset: i64,
    /// Its timestamp in milliseconds since 1970, -1 for none.
    pub timestamp_ms: i64,
    /// A digest of its key and value.
    pub digest: u64,
}

/// A stretch of one partition that has been worked through: all or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitUnit {
    /// The partition.
    pub id: PartitionId,
    /// The lease under which the work was done.
    pub epoch: u32,
    /// The head before: must be the store's own, so that no stretch is ever left out.
    pub previous: NextOffset,
    /// The head behind; above [`previous`](CommitUnit::previous), or equal to it where the unit
    /// only fills [`gaps`](CommitUnit::gaps), or opens them.
    pub next: NextOffset,
    /// The highest timestamp of the stretch in milliseconds since 1970, -1 where none has one.
    pub max_timestamp_ms: i64,
    /// The last record of the stretch.
    pub anchor: Option<Anchor>,
    /// The keys done since the unit before, in the order in which they were: some may lie below
    /// [`previous`](CommitUnit::previous), in its gaps. A stretch of nothing but copies has none
    /// and still moves the head.
    pub entries: Vec<Entry>,
    /// What below [`next`](CommitUnit::next) is not done yet.
    pub gaps: Gaps,
    /// What the handlers of the stretch sent, for the store whose handlers send. It is part of no
    /// store's data.
    pub outbox: Vec<Outgoing>,
}

impl CommitUnit {
    /// Everything below is done, once the unit is: what the group may be told.
    #[must_use]
    pub fn position(&self) -> NextOffset {
        self.gaps.first().unwrap_or(self.next)
    }
}

/// Where a unit lies in its partition's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its [`next`](CommitUnit::next).
    pub next: NextOffset,
    /// Counts the units that left `next` where it was, from 1; 0 for the one that moved it there.
    pub step: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            0 => self.next.fmt(f),
            step => write!(f, "{} (step {step})", self.next),
        }
    }
}

impl From<NextOffset> for Place {
    /// Behind everything that ends at `next` or before.
    fn from(next: NextOffset) -> Self {
        Self {
            next,
            step: u32::MAX,
        }
    }
}
