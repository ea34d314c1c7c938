//! What ends a consumer.

use crate::audit;
use crate::dead_letter::DeadLetterError;
use crate::key::NoIdentity;
use crate::outbox::OutboxError;
use crate::record::{Coordinates, NextOffset, TopicPartition};
use crate::source::SourceError;
use crate::store::StoreError;

/// Any error, as it comes out of user code.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a consumer was not built, or stopped. In every case no offset has moved past a record that
/// is not done and marked.
///
/// What was done is marked too, with three exceptions, after which the next lease of a partition
/// is [in doubt](crate::Delivery::in_doubt): after [`Error::Store`] where the store could not be
/// written, after [`Error::Panicked`], and for the work that [`Error::DrainTimeout`] is about,
/// effects may have happened that have no mark.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Settings that would break the promise.
    #[error(transparent)]
    Refused(#[from] audit::Refused),
    /// The store refused or failed.
    #[error(transparent)]
    Store(StoreError),
    /// The connection to Kafka failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A handler failed at every attempt, or rejected the record, and there are no dead letters.
    #[error(
        "the handler failed on {at} at attempt {attempts}: {source}. The record is not marked and \
         its offset not committed: it comes again at the next start. To have such records set \
         aside, and those behind them handled, name a topic with `Builder::dead_letter`"
    )]
    Handler {
        /// The record.
        at: Coordinates,
        /// How often it was tried.
        attempts: u32,
        /// The last attempt's error.
        source: BoxError,
    },
    /// A record carries no identity, the policy is to reject it, and there are no dead letters.
    #[error(
        "{at} has no key ({source}): choose a recipe that finds one, have such records set aside \
         with `Builder::dead_letter`, or let them pass unprotected with `MissingKey::PassThrough`"
    )]
    MissingKey {
        /// The record.
        at: Coordinates,
        /// Why none was found.
        source: NoIdentity,
    },
    /// The dead letters cannot be used, or one was not written.
    #[error(transparent)]
    DeadLetter(#[from] DeadLetterError),
    /// What handlers send cannot be sent.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// A key came again with another value, and the policy is to stop, or there are no dead letters.
    #[error(
        "{at} has the key of {first}, but another value: two records under one key. Have such \
         records set aside with `Builder::dead_letter`, or, only if the producer's copies differ \
         by nature, choose `Mismatch::TreatAsDuplicate`"
    )]
    Mismatch {
        /// The record.
        at: Coordinates,
        /// The record that took effect.
        first: Coordinates,
    },
    /// The topic is not the one that the store knows.
    #[error(
        "{partition} is not what it was: {what}. The topic was deleted and created again, or its \
         log was cut short. To start over on the new one, use a new store directory and delete \
         the group's offsets"
    )]
    TopicChanged {
        /// The partition.
        partition: TopicPartition,
        /// What does not fit.
        what: String,
    },
    /// The group is ahead of the store, and the policy is to refuse.
    #[error(
        "the group has committed {partition} up to {committed}, the store knows it up to {head}: \
         choose `Restore::FromSource` to read what lies between for its keys"
    )]
    StoreBehind {
        /// The partition.
        partition: TopicPartition,
        /// What the store knows.
        head: NextOffset,
        /// What the group has committed.
        committed: NextOffset,
    },
    /// Work was not finished when its time was up.
    #[error("work on {partition} was not finished within {limit_ms} ms; it may be repeated")]
    DrainTimeout {
        /// The partition.
        partition: TopicPartition,
        /// The limit in milliseconds.
        limit_ms: u128,
    },
    /// The operating system gave no thread.
    #[error("no thread for {what}: {source}")]
    Thread {
        /// What it was for.
        what: String,
        /// The operating system's word.
        source: std::io::Error,
    },
    /// A thread of the consumer died: in a key function, a hook or a store of the user's, or by a
    /// bug in this crate. A handler's panic is a failed attempt instead.
    #[error("a thread of the consumer ended in a panic: see its message on standard error")]
    Panicked,
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            // It comes through the store, but it is not about it.
            StoreError::Outbox(error) => Self::Outbox(error),
            error => Self::Store(error),
        }
    }
}
