//! What an operator may want to know of a store.

use super::{DirectoryStore, Engine};
use crate::record::{NextOffset, TopicPartition};
use crate::store::{Gaps, Head, Owner};

/// A store as it lies on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// What its log is kept in: `sled` or `redb`.
    pub engine: &'static str,
    /// Whose it is, `None` where no consumer has used it yet.
    pub owner: Option<Owner>,
    /// The id of the Kafka cluster whose offsets it knows.
    pub cluster_id: Option<String>,
    /// How many keys it knows, those that were forgotten among them.
    pub keys: u64,
    /// The partitions in the order in which they were first taken.
    pub partitions: Vec<PartitionState>,
}

/// One partition of an [`Inspection`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionState {
    /// The partition.
    pub partition: TopicPartition,
    /// Where the store's knowledge of it begins.
    pub floor: Option<NextOffset>,
    /// Where the work stands, `None` before the first commit.
    pub head: Option<Head>,
    /// What below the head is not done.
    pub gaps: Gaps,
    /// Whether effects may exist whose marks do not: the last owner did not end in order.
    pub in_doubt: bool,
}

impl<E: Engine> DirectoryStore<E> {
    /// Says what the store holds.
    #[must_use]
    pub fn inspect(&self) -> Inspection {
        let state = self.state();
        let partitions = state.partitions.iter().zip(&state.marks);
        Inspection {
            engine: E::NAME,
            owner: state.stamp.owner(),
            cluster_id: state.stamp.cluster_id.clone(),
            keys: self.index.len(),
            partitions: partitions
                .map(|((_, one), mark)| PartitionState {
                    partition: one.name.clone(),
                    floor: one.head.and(mark.floor),
                    head: one.head,
                    gaps: one.gaps.clone(),
                    in_doubt: one.open,
                })
                .collect(),
        }
    }
}
