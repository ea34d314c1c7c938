//! Why a record becomes a letter.

/// Why a record was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Its handler rejected it.
    Rejected,
    /// Its handler failed at every attempt.
    AttemptsUsedUp,
    /// It carries no key.
    MissingKey,
    /// Its key is known with another value.
    Mismatch,
}

impl Reason {
    /// What a letter says: the name of the type that the consumer would otherwise have stopped with.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rejected => "idempotent_consumer::HandlerError::Reject",
            Self::AttemptsUsedUp => "idempotent_consumer::Error::Handler",
            Self::MissingKey => "idempotent_consumer::Error::MissingKey",
            Self::Mismatch => "idempotent_consumer::Error::Mismatch",
        }
    }
}

/// What a letter says about the failure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cause<'a> {
    pub(crate) reason: Reason,
    /// The error's text, of any length.
    pub(crate) error: &'a str,
    pub(crate) attempts: u32,
}
