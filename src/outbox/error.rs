//! Why nothing could be sent.

/// The outbox cannot be used.
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
}
