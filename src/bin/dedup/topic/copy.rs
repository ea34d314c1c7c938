//! What is done with a record that is new.

use idempotent_consumer::{
    Delivery, Handler, HandlerError, HandlerResult, Outbox, Outgoing, Record,
};

use super::{broker::Output, config::Partitioning};

/// What a batch of one record has beside the record, and a record beside its parts, at most: the
/// numbers in it have as many bytes as they need.
const BATCH_BYTES: usize = 61;
const RECORD_BYTES: usize = 31;
const HEADER_BYTES: usize = 10;

/// Sends each record on as it is.
pub(super) struct Copy {
    pub(super) to: String,
    pub(super) partitioning: Partitioning,
    pub(super) output: Output,
}

/// Why a topic does not take a record. Found out before it is sent: a broker's refusal would end
/// the whole transaction, at every start.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(
        "with {bytes} bytes it is larger than {to} takes, whose max.message.bytes is {bytes_max}: \
         raise that"
    )]
    TooLarge {
        to: String,
        bytes: usize,
        bytes_max: usize,
    },
    #[error("it has no record key, and {to} is compacted: without one a record is not taken there")]
    NoKey { to: String },
    #[error("it comes from partition {partition}, and {to} has {partitions}: give it as many")]
    NoPartition {
        to: String,
        partition: i32,
        partitions: i32,
    },
}

impl Copy {
    fn refuse(&self, record: &Record<'_>) -> Option<Refusal> {
        let (to, output) = (self.to.clone(), &self.output);
        let bytes = bytes(record);
        match output.batch_bytes_max {
            Some(bytes_max) if bytes > bytes_max => {
                return Some(Refusal::TooLarge {
                    to,
                    bytes,
                    bytes_max,
                });
            }
            _ => {}
        }
        if output.compacted && record.key().is_none() {
            return Some(Refusal::NoKey { to });
        }
        let (partition, partitions) = (record.partition(), output.partitions);
        // The topic that is read may have got more since the start.
        (self.partitioning == Partitioning::Same && partition >= partitions).then_some(
            Refusal::NoPartition {
                to,
                partition,
                partitions,
            },
        )
    }
}

/// How long a batch with this record alone may be, uncompressed.
fn bytes(record: &Record<'_>) -> usize {
    let length = |part: Option<&[u8]>| part.map_or(0, <[u8]>::len);
    let headers = record.headers().iter();
    let headers: usize = headers
        .map(|(name, value)| HEADER_BYTES + name.len() + length(value))
        .sum();
    BATCH_BYTES + RECORD_BYTES + length(record.key()) + length(record.value()) + headers
}

impl Handler<Outbox> for Copy {
    async fn handle(&self, record: &Delivery<'_>, outbox: &mut Outbox) -> HandlerResult {
        if let Some(refusal) = self.refuse(record) {
            return Err(HandlerError::reject(refusal));
        }
        let copy = Outgoing::copy_of(record, self.to.as_str());
        outbox.send(match self.partitioning {
            Partitioning::Key => copy,
            Partitioning::Same => copy.partition(record.partition()),
        });
        Ok(())
    }
}
