//! What a source reports.

use crate::error::BoxError;
use crate::record::TopicPartition;

/// A failure of the connection to Kafka, or of what came over it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A call to the client failed.
    #[error("{operation} failed: {cause}")]
    Client {
        /// What was being done.
        operation: &'static str,
        /// The client's error.
        #[source]
        cause: BoxError,
    },
    /// A partition cannot be read on.
    #[error("reading {partition} failed{near}: {message}")]
    Partition {
        /// The partition.
        partition: TopicPartition,
        /// ` at offset 7`, where it is known.
        near: String,
        /// The client's message.
        message: String,
    },
    /// Another process joined with the same `group.instance.id`.
    #[error(
        "the consumer was shut out: {message}. Another process has joined with the same \
         group.instance.id: give each its own, and start one of them again"
    )]
    InstanceFenced {
        /// The client's message.
        message: String,
    },
    /// The client cannot go on: refused for good.
    #[error("the consumer was shut out: {message}. {remedy}")]
    Fatal {
        /// The client's message.
        message: String,
        /// What to look at.
        remedy: String,
    },
}

impl SourceError {
    pub(crate) fn client<E>(operation: &'static str) -> impl FnOnce(E) -> Self
    where
        E: Into<BoxError>,
    {
        move |cause| Self::Client {
            operation,
            cause: cause.into(),
        }
    }
}
