//! Where records come from, and where positions go back to.

mod error;
pub(crate) mod kafka;
mod offsets;

use std::sync::Arc;
use std::time::Duration;

pub use self::error::SourceError;
pub use self::kafka::ClientConfig;
pub(crate) use self::offsets::Offsets;
use crate::engine::Committed;
use crate::record::{NextOffset, Record, TopicPartition};

/// Records of one partition, in the order of their offsets. Gaps are normal: compaction and
/// transaction markers leave them.
pub(crate) trait Batch: Send + Sync {
    fn len(&self) -> usize;
    /// The record at `index`, below [`len`](Batch::len).
    fn record(&self, index: usize) -> Option<Record<'_>>;
}

/// Reads one assigned partition. Used by one thread; dropped before the partition is given back.
pub(crate) trait Reader: Send {
    /// The next records, at most `max`; none where `wait` passes without one.
    fn read(&mut self, max: usize, wait: Duration) -> Result<Arc<dyn Batch>, SourceError>;

    /// The offsets of the oldest record and behind the newest one.
    fn watermarks(&self) -> Result<(NextOffset, NextOffset), SourceError>;
}

/// A partition that is about to be assigned.
pub(crate) struct Offered {
    pub(crate) partition: TopicPartition,
    /// What the group has committed, if anything.
    pub(crate) committed: Option<NextOffset>,
}

/// Where reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// At the group's committed offset, or by the reset policy where there is none.
    Committed,
    /// At the oldest record.
    Oldest,
    At(NextOffset),
}

/// Who works on assigned partitions.
///
/// Called on the thread that polls, one call at a time. A `revoked` may block: that is how the
/// group waits for work to be finished before somebody else begins it.
pub(crate) trait Listener: Send + Sync {
    /// Takes offered partitions and says where to read them from. Nothing has been read yet.
    fn offered(&self, partitions: &[Offered]) -> Vec<Start>;

    /// Reading has begun; one reader for each offered partition, in the same order.
    fn assigned(&self, readers: Vec<(TopicPartition, Box<dyn Reader>)>);

    /// The partitions are taken away. `lost` says that others may work on them already. Returns
    /// what to commit for them.
    fn revoked(&self, partitions: &[TopicPartition], lost: bool) -> Vec<Committed>;
}

/// A group member, driven by one thread.
pub(crate) trait Source {
    /// Joins the group.
    fn join(&mut self, listener: Arc<dyn Listener>) -> Result<(), SourceError>;

    /// Serves what has come in, rebalances among it, for about `wait`.
    fn poll(&mut self, wait: Duration) -> Result<(), SourceError>;

    /// Sends positions to the group, without waiting for the answer.
    fn commit(&mut self, positions: &[Committed]);

    /// Answers to commits, as they come in.
    fn commit_answers(&mut self) -> Vec<Result<Vec<Committed>, SourceError>>;

    /// Commits positions, waits for the answer, and leaves the group, within about `limit`.
    fn leave(&mut self, positions: &[Committed], limit: Duration) -> Result<(), SourceError>;

    /// The cluster's id, `None` where it has none or the wait was given up.
    fn cluster_id(
        &self,
        limit: Duration,
        given_up: &dyn Fn() -> bool,
    ) -> Result<Option<String>, SourceError>;
}
