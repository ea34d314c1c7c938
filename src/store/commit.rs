//! What is written at once.

use super::PartitionId;
use crate::key::Fingerprint;
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
    /// The head behind; above [`previous`](CommitUnit::previous).
    pub next: NextOffset,
    /// The highest timestamp of the stretch in milliseconds since 1970, -1 where none has one.
    pub max_timestamp_ms: i64,
    /// The last record of the stretch.
    pub anchor: Option<Anchor>,
    /// The keys done in it, in the order of their offsets. A stretch of nothing but copies has
    /// none and still moves the head.
    pub entries: Vec<Entry>,
}
