//! What can be chosen, with its bounds.

use std::sync::Arc;
use std::time::Duration;

use crate::handler::Delivery;
use crate::key::{MissingKey, Recipe};
use crate::retry::RetryPolicy;

/// What to do with a record whose key is known with another value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// Stop with an error that names both records; the offset does not move. The default: two
    /// records under one key are a producer's bug, and dropping either loses something.
    #[default]
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
    /// then go on. The default. What the topic no longer holds is not recognised any more.
    #[default]
    FromSource,
    /// Stop with an error that names the partition and both offsets.
    Refuse,
    /// Go on at the committed offset. Copies of what was handled in the stretch are new then.
    Ignore,
}

pub(crate) type CopyHook = dyn Fn(&Delivery<'_>, Option<&[u8]>) + Send + Sync;

/// All choices of one consumer.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) recipe: Recipe,
    pub(crate) missing_key: MissingKey,
    pub(crate) mismatch: Mismatch,
    pub(crate) restore: Restore,
    pub(crate) retry: RetryPolicy,
    pub(crate) on_duplicate: Option<Arc<CopyHook>>,
    /// Effects of one partition that a crash may repeat.
    pub(crate) uncommitted_records_max: usize,
    /// From an effect to the start of its durable commit.
    pub(crate) commit_linger: Duration,
    /// Between two advisory commits to the group.
    pub(crate) offset_interval: Duration,
    /// For finishing work when partitions are taken away, and at the end.
    pub(crate) drain_limit: Duration,
}

/// Records that one call takes from librdkafka: its queue holds them anyway, and one call is one
/// lock.
pub(crate) const READ_RECORDS_MAX: usize = 2_000;

/// The most that [`Settings::uncommitted_records_max`] can be, and its default.
pub(crate) const UNCOMMITTED_RECORDS_MAX: usize = 1_000;
