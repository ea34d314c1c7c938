//! Reads one assigned partition.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::Consumer as _;

use super::batch::PartitionQueue;
use super::patience::{REQUEST_LIMIT, patiently};
use crate::record::NextOffset;
use crate::source::{Batch, Reader, SourceError};

pub(super) struct KafkaReader(PartitionQueue);

impl KafkaReader {
    pub(super) fn new(queue: PartitionQueue) -> Self {
        Self(queue)
    }
}

impl Reader for KafkaReader {
    fn read(&mut self, max: usize, wait: Duration) -> Result<Arc<dyn Batch>, SourceError> {
        Ok(Arc::new(self.0.read(max, wait)?))
    }

    fn watermarks(&self) -> Result<(NextOffset, NextOffset), SourceError> {
        let partition = self.0.partition();
        let (topic, number) = (partition.topic(), partition.partition());
        let consumer = self.0.consumer();
        let (low, high) = patiently(|| consumer.fetch_watermarks(topic, number, REQUEST_LIMIT))
            .map_err(SourceError::client("asking for a partition's watermarks"))?;
        // Kafka has no negative watermarks.
        let position = |offset| NextOffset::new(offset).unwrap_or(NextOffset::ZERO);
        Ok((position(low), position(high)))
    }
}
