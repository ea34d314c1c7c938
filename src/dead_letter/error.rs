//! What keeps a letter from being written.

use crate::audit::Refused;
use crate::error::BoxError;
use crate::record::Coordinates;

/// Why a dead-letter topic cannot be used, or a letter was not written. The letter's record is not
/// marked and its offset not committed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeadLetterError {
    /// Settings that would break the promise.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The producer could not be made.
    #[error("the producer for the dead-letter topic {topic} could not be made: {cause}")]
    Producer {
        /// The dead-letter topic.
        topic: String,
        /// The client's or the operating system's error.
        #[source]
        cause: BoxError,
    },
    /// The topic is not there, or not to be reached.
    #[error("the dead-letter topic {topic} cannot be used: {cause}. {remedy}")]
    Topic {
        /// The dead-letter topic.
        topic: String,
        /// The brokers' or the client's error.
        #[source]
        cause: BoxError,
        /// What to do.
        remedy: String,
    },
    /// A letter was not confirmed.
    #[error(
        "the letter for {at} to the dead-letter topic {topic} was not confirmed: {cause}. \
         {remedy}. The record is not marked and its offset not committed: it comes again at the \
         next start"
    )]
    Letter {
        /// The dead-letter topic.
        topic: String,
        /// The record that the letter is about.
        at: Coordinates,
        /// The brokers' or the client's error.
        #[source]
        cause: BoxError,
        /// What to do.
        remedy: String,
    },
    /// The record comes from the dead-letter topic itself: its letter would be read, fail and be
    /// written again without end.
    #[error(
        "{at} lies in the dead-letter topic itself, and its letter would come back to this \
         consumer for ever: give the consumer that reads dead letters another topic for its own, \
         or none"
    )]
    OwnTopic {
        /// The record.
        at: Coordinates,
    },
    /// A pattern among the consumer's topics matches its own dead-letter topic.
    #[error(
        "{topic} is this consumer's own dead-letter topic, and a pattern in `topics` matches it: \
         every letter would be read and handled at once, under another identity. Choose a pattern \
         that does not match it, or another topic for the letters"
    )]
    Subscribed {
        /// The dead-letter topic.
        topic: String,
    },
    /// At the end letters were in flight that nobody waits for any more.
    #[error(
        "letters to the dead-letter topic {topic} were not confirmed within {limit_ms} ms; their \
         records are not marked and come again at the next start"
    )]
    Unconfirmed {
        /// The dead-letter topic.
        topic: String,
        /// How long they were waited for, in milliseconds.
        limit_ms: u128,
    },
}
