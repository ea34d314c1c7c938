//! What can be chosen, with its bounds.

use std::sync::Arc;
use std::time::Duration;

use crate::dead_letter::Letterbox;
use crate::handler::Delivery;
use crate::key::{MissingKey, Recipe};
use crate::record::{NextOffset, TopicPartition};
use crate::retention::Retention;
use crate::retry::RetryPolicy;

/// What to do with a record whose key is known with another value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// Write it to the [dead letters](crate::DeadLetter), or stop where there are none. The default:
    /// two records under one key are a producer's bug, and dropping either loses something.
    #[default]
    DeadLetter,
    /// Stop with an error that names both records; the offset does not move.
    Stop,
    /// Skip the record like any copy, counted as [`Mismatch`](crate::Decision::Mismatch). For
    /// producers whose copies differ in a timestamp or the like.
    TreatAsDuplicate,
}

/// What to do where the group has committed further than the store knows: another member with a
/// store of its own worked meanwhile, or this store is new or lost something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Restore {
    /// Read the missing stretch from the topic, for its keys only, without calling the handler;
    /// then go on. The default. What the topic no longer holds is not recognised any more. What the
    /// group has passed counts as done, records that went to the dead letters among it: their
    /// letters are tried [in doubt](crate::Delivery::in_doubt), their copies are passed over.
    #[default]
    FromSource,
    /// Stop with an error that names the partition and both offsets.
    Refuse,
    /// Go on at the committed offset. Copies of what was handled in the stretch are new then.
    Ignore,
}

/// How far the restore of one partition has come.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreProgress {
    /// The partition.
    pub partition: TopicPartition,
    /// Where reading for keys began.
    pub from: NextOffset,
    /// Where it is.
    pub at: NextOffset,
    /// Where it ends: what the group had committed when the partition was taken.
    pub to: NextOffset,
    /// Records so far whose key the store did not know, copies among them as long as the first is
    /// not durable.
    pub keys: u64,
    /// Whether it is over: told once for each restore, when all its keys are durable.
    pub done: bool,
}

/// In which order the records of a partition are handled.
///
/// Whatever it is: copies of a key in flight wait for the first, what is done is durable at once in
/// this store, and the group is told of the lowest record that is not done. When a partition is
/// given up, what lies below finished work is finished first, for three quarters of the
/// [drain limit](crate::Builder::drain_limit); what still fails then is left to the next owner, and
/// if that has a store of its own, it does what was done above once more.
///
/// Out of order, up to 20,000 records behind the lowest unfinished one are kept in memory, with the
/// batches that they came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ordering {
    /// One at a time, in the order of their offsets. The default: what a consumer expects that
    /// reads a partition by itself. Partitions are independent of each other.
    #[default]
    Partition,
    /// Several at once, but those with the same record key one after the other, in the order of
    /// their offsets. Records without a record key come in any order. It is Kafka's record key
    /// that counts here, wherever the identity comes from.
    Key,
    /// Several at once, in any order.
    Unordered,
}

pub(crate) type RestoreHook = dyn Fn(&RestoreProgress) + Send + Sync;
pub(crate) type CopyHook = dyn Fn(&Delivery<'_>, Option<&[u8]>) + Send + Sync;
pub(crate) type AssignmentHook = dyn Fn(&[TopicPartition]) + Send + Sync;

/// All choices of one consumer.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) recipe: Recipe,
    pub(crate) missing_key: MissingKey,
    pub(crate) mismatch: Mismatch,
    pub(crate) restore: Restore,
    pub(crate) ordering: Ordering,
    /// Records handled at once over all partitions, where that is bounded.
    pub(crate) concurrency_max: Option<usize>,
    pub(crate) retry: RetryPolicy,
    pub(crate) retention: Retention,
    /// Where records go that cannot be handled.
    pub(crate) letterbox: Option<Arc<dyn Letterbox>>,
    /// Topics whose records may be letters that come back.
    pub(crate) replay_from: Arc<[String]>,
    pub(crate) on_duplicate: Option<Arc<CopyHook>>,
    pub(crate) on_restore: Option<Arc<RestoreHook>>,
    pub(crate) on_assignment: Option<Arc<AssignmentHook>>,
    /// Effects of one partition that a death of the process may repeat.
    pub(crate) uncommitted_records_max: usize,
    /// Effects of one partition that a power cut may repeat.
    pub(crate) unsynced_records_max: usize,
    /// From an effect to the start of its durable commit.
    pub(crate) commit_linger: Duration,
    /// Between two advisory commits to the group.
    pub(crate) offset_interval: Duration,
    /// The store sends the positions to the group itself, with what it commits.
    pub(crate) offsets_sent: bool,
    /// The store writes marks in the transaction that the handlers write in: what it does not know
    /// has not happened.
    pub(crate) transacts: bool,
    /// For finishing work when partitions are taken away, and at the end.
    pub(crate) drain_limit: Duration,
}

/// Records that one call takes from librdkafka: its queue holds them anyway, and one call is one
/// lock.
pub(crate) const READ_RECORDS_MAX: usize = 2_000;

/// Records handled at once where they need not be in order, and nothing was chosen.
pub(crate) const CONCURRENCY_DEFAULT: usize = 64;

/// Records taken in behind the lowest unfinished one of a partition; then reading waits for it.
/// About so many are kept in memory with it, and are looked at again and passed over after a
/// restart.
pub(crate) const AHEAD_RECORDS_MAX: u64 = 20_000;

/// The most that [`Settings::uncommitted_records_max`] can be, and its default.
pub(crate) const UNCOMMITTED_RECORDS_MAX: usize = 1_000;

/// The most that [`Settings::unsynced_records_max`] can be, and its default where neither it nor the
/// other bound was chosen: two units as long as a store takes, one filled while the other is on its
/// way to the device.
pub(crate) const UNSYNCED_RECORDS_MAX: usize = 8_000;
