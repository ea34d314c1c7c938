//! What a handler sends.

use serde::Serialize;

use super::Outgoing;
use crate::handler::{Effects, HandlerResult};

/// Collects what a handler sends and records. Nothing of it is there before the record is done;
/// then all of it becomes readable at once, with the record's mark and offset.
#[derive(Debug, Default)]
pub struct Outbox {
    pub(crate) effects: Effects,
    pub(crate) records: Vec<Outgoing>,
}

impl Outbox {
    /// Sends a record. Those of one handler keep their order in each partition that is written to,
    /// and so do those of one partition that is read.
    pub fn send(&mut self, record: Outgoing) {
        self.records.push(record);
    }

    /// Records a result, as JSON, for copies of the record to be answered with. The last one
    /// counts.
    ///
    /// # Errors
    /// As [`Effects::record`].
    pub fn record<T: Serialize + ?Sized>(&mut self, result: &T) -> HandlerResult {
        self.effects.record(result)
    }

    /// Records a result as it is.
    ///
    /// # Errors
    /// As [`Effects::record_bytes`].
    pub fn record_bytes(&mut self, result: impl Into<Box<[u8]>>) -> HandlerResult {
        self.effects.record_bytes(result)
    }
}
