//! What a store that forgets offers to whoever decides what it is to forget.

use std::sync::Arc;

use super::{PartitionId, StoreError};
use crate::clock::Clock;
use crate::record::{NextOffset, TopicPartition};

/// What a store holds of one partition, as far as it matters what may expire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retained {
    /// The partition's number.
    pub id: PartitionId,
    /// Its name.
    pub partition: TopicPartition,
    /// Where its log began, before anything expired.
    pub began: NextOffset,
    /// Where it begins now: above [`began`](Retained::began) where something expired.
    pub from: NextOffset,
    /// Everything below is done.
    pub position: NextOffset,
    /// Whether it is leased.
    pub open: bool,
    /// Its clock, in milliseconds since 1970: see [`Retention`](crate::Retention).
    pub clock_ms: i64,
    /// From when its oldest unit is, by that clock.
    pub oldest_ms: i64,
    /// How much it holds.
    pub usage: Usage,
}

/// How much is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Keys; one that was committed twice counts twice.
    pub entries: u64,
    /// Bytes of commit records, as they were first written.
    pub bytes: u64,
}

/// What of a partition is to expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The partition.
    pub id: PartitionId,
    /// Units from before this time, in milliseconds since 1970 by the partition's clock. Not one
    /// behind another that is younger.
    pub older_than_ms: i64,
    /// Units that end here or before.
    pub below: NextOffset,
    /// The step ends with the unit that brings it to so many keys.
    pub entries: u64,
    /// The step ends with the unit that brings it to so many bytes.
    pub bytes: u64,
}

/// What has expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired {
    /// Keys, each one that a record would be handled again for.
    pub keys: u64,
    /// Commit units.
    pub units: u64,
    /// Bytes of commit records; 0 of a store that does not count them.
    pub bytes: u64,
}

impl Expired {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            keys: self.keys + other.keys,
            units: self.units + other.units,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// The part of a [`Store`](super::Store) that forgets what is too old or too much. What is to go
/// is decided by a [`Sweeper`](crate::Sweeper).
///
/// Whole units go, from a partition's front. Never one that ends above the partition's position,
/// nor the last one, which says where the work stands.
pub trait Retaining: Send + Sync {
    /// The clock by which units are written.
    fn clock(&self) -> Arc<dyn Clock>;

    /// How much is held, over all partitions. Cheap: it is asked for after each commit.
    fn usage(&self) -> Usage;

    /// What is held of each partition that has a head.
    ///
    /// # Errors
    /// Where the store cannot be read.
    fn retained(&self) -> Result<Vec<Retained>, StoreError>;

    /// About how many keys would expire, in all steps together. Nothing is written.
    ///
    /// # Errors
    /// Where the store cannot be read.
    fn would_expire(&self, expiry: &Expiry) -> Result<u64, StoreError>;

    /// Expires one step: at most some tens of thousands of keys, in some tens of milliseconds. It
    /// is over where no units went.
    ///
    /// That keys may be missing is durable before the first of them is: a crash in the middle
    /// leaves a store that opens, and that drops the rest then.
    ///
    /// # Errors
    /// Where the store cannot be read, or not be written, which poisons it.
    fn expire(&self, expiry: &Expiry) -> Result<Expired, StoreError>;
}
