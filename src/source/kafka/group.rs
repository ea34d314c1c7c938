//! The membership as others need it: a transaction that commits positions names it, and is refused
//! where the member has been replaced.

use std::sync::{Arc, Weak};

use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerGroupMetadata};
use rdkafka::error::KafkaError;
use rdkafka::topic_partition_list::TopicPartitionList;

use super::context::{Context, offered};
use super::membership::has_generation;
use super::patience::patiently;
use crate::record::{NextOffset, TopicPartition};
use crate::source::SourceError;

/// Whether a partition is this member's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Held,
    /// The group has taken something away without asking, and it is not told yet what.
    Unclear,
    /// It is not, or others may have it.
    Gone,
}

/// The membership of one consumer, for as long as that lives.
#[derive(Clone)]
pub(crate) struct Group {
    // Not a reference that counts: whoever sends must not keep the client from being closed.
    consumer: Weak<BaseConsumer<Context>>,
}

impl Group {
    pub(super) fn new(consumer: &Arc<BaseConsumer<Context>>) -> Self {
        Self {
            consumer: Arc::downgrade(consumer),
        }
    }

    /// Who is a member right now, of which generation. `None` once the consumer is gone.
    ///
    /// Only what is [held](Group::standing) after it was asked for may be committed with it. The
    /// group gives a partition to another member in a later generation, and so refuses this one
    /// then. Not the other way round: a member that was shut out has no generation, and the group
    /// takes that for somebody who does not want to be checked.
    pub(crate) fn metadata(&self) -> Option<ConsumerGroupMetadata> {
        self.consumer.upgrade()?.group_metadata()
    }

    /// Whether a partition is this member's, as far as it has been told.
    pub(crate) fn standing(&self, partition: &TopicPartition) -> Standing {
        let Some(consumer) = self.consumer.upgrade() else {
            return Standing::Gone;
        };
        // Before it is asked what is held: a loss is told with the generation, before anybody can ask
        // for the next one's, and forgotten behind the partitions.
        // In a rebalance a loss is not told at all, but the generation is gone all the same.
        let lost = consumer.assignment_lost()
            || !has_generation(&consumer)
            || consumer.client().fatal_error().is_some();
        match (consumer.client().context().is_revoking(partition), lost) {
            (Some(_), false) => Standing::Held,
            (Some(false), true) => Standing::Unclear,
            (None, _) | (Some(true), true) => Standing::Gone,
        }
    }

    /// What the group had committed when the partition was taken.
    pub(crate) fn committed(&self, partition: &TopicPartition) -> Option<NextOffset> {
        let consumer = self.consumer.upgrade()?;
        consumer.client().context().committed(partition)
    }

    /// What the group has committed by now, behind all transactions that were open.
    pub(crate) fn ask_committed(
        &self,
        partition: &TopicPartition,
    ) -> Result<Option<NextOffset>, SourceError> {
        let gone = KafkaError::Canceled;
        let failed = SourceError::client("asking for the group's offsets");
        let consumer = self.consumer.upgrade();
        let answer = consumer.ok_or(gone).and_then(|consumer| {
            let mut list = TopicPartitionList::new();
            list.add_partition(partition.topic(), partition.partition());
            patiently(|| offered(&consumer, &list))
        });
        let answer = answer.map_err(failed)?;
        Ok(answer.first().and_then(|offered| offered.committed))
    }
}
