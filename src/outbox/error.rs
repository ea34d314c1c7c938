//! Why nothing could be sent.

/// What handlers sent could not be sent. No mark was written and no position moved for it, except
/// where [`Unknown`](OutboxError::Unknown) says that this is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutboxError {
    /// The producer could not be made or reached.
    #[error(
        "the transactional producer {transactional_id:?} could not be started: {message}. Nothing \
         was read; look at the brokers and at its access rights, and start again"
    )]
    Start {
        /// Its `transactional.id`.
        transactional_id: String,
        /// The client's word.
        message: String,
    },
    /// One producer serves one consumer, and a process has one of a `transactional.id`.
    #[error(
        "the transactional store {transactional_id:?} serves another consumer of this process \
         already: give each a store of its own (or, for clusters of their own, a \
         `Transactional::transactional_id` of its own)"
    )]
    InUse {
        /// Its `transactional.id`.
        transactional_id: String,
    },
    /// A record can never be written.
    #[error(
        "a record for topic {topic:?} was refused: {message}. {remedy}. Nothing of its transaction \
         was committed, and what it answers comes again at the next start"
    )]
    Record {
        /// Where it was to go.
        topic: String,
        /// Whose word it is, and what it says.
        message: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The brokers do not let it in.
    #[error(
        "the transactional producer {transactional_id:?} is not let in: {message}. The principal \
         needs Write on the topics that are sent to, Read on the group, and Describe and Write on \
         the transactional id"
    )]
    Denied {
        /// Its `transactional.id`.
        transactional_id: String,
        /// The client's word.
        message: String,
    },
    /// Another producer has the same `transactional.id`.
    #[error(
        "the transactional producer {transactional_id:?} was fenced: {message}. Another process \
         works with the same transactional id, so with a copy of this store or with an id that was \
         set for both: give each its own, and start one of them again"
    )]
    Fenced {
        /// Its `transactional.id`.
        transactional_id: String,
        /// The client's word.
        message: String,
    },
    /// No transaction could be committed in time.
    #[error(
        "no transaction of {transactional_id:?} could be committed for {limit_ms} ms: {message}. \
         What it was to send was not sent; look at the brokers, and start again"
    )]
    Patience {
        /// Its `transactional.id`.
        transactional_id: String,
        /// How long it was tried, in milliseconds.
        limit_ms: u128,
        /// The last failure.
        message: String,
    },
    /// Nobody said whether a transaction was committed.
    #[error(
        "it is not known whether the last transaction of {transactional_id:?} was committed: \
         {message}. Start again with the same store: the brokers then say which, before anything \
         is read, and what was sent is not sent again"
    )]
    Unknown {
        /// Its `transactional.id`.
        transactional_id: String,
        /// The last failure.
        message: String,
    },
    /// The client cannot go on.
    #[error(
        "the transactional producer {transactional_id:?} cannot go on: {message}. Nothing of the \
         last transaction was committed; start again once its cause is mended"
    )]
    Fatal {
        /// Its `transactional.id`.
        transactional_id: String,
        /// The client's word.
        message: String,
    },
    /// The consumer has come to its end.
    #[error("{transactional_id:?} has ended: what was not sent by then comes again")]
    Ended {
        /// Its `transactional.id`.
        transactional_id: String,
    },
}
