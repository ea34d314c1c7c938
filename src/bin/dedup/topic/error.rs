//! What ends `dedup topic`, in the operator's words.

use std::{io, net::SocketAddr, path::PathBuf};

use idempotent_consumer::{DeadLetterError, SourceError, store::StoreError};

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// A setting is wrong.
    #[error("{0}; see 'dedup topic --help'")]
    Usage(String),

    #[error("{path}: cannot read the settings: {source}", path = path.display())]
    Config { path: PathBuf, source: io::Error },

    /// The directory of the store cannot be one.
    #[error(transparent)]
    Place(#[from] crate::place::Refusal),

    #[error(transparent)]
    Store(#[from] StoreError),

    #[error("cannot listen on {address}: {source}; choose another address with --listen")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },

    #[error("cannot {action}: {source}")]
    System {
        action: &'static str,
        source: io::Error,
    },

    /// The client does not take a setting.
    #[error("librdkafka does not take these settings: {0}")]
    Client(String),

    #[error("the brokers cannot be asked about {topic}: {reason}")]
    Brokers { topic: String, reason: String },

    /// A topic is not there, or cannot be used for this.
    #[error("{topic}: {reason}")]
    Topic { topic: String, reason: String },

    #[error("{}", said(.0))]
    Consumer(#[from] idempotent_consumer::Error),
}

/// The library's words name what a program would call; here it is a flag.
fn said(error: &idempotent_consumer::Error) -> String {
    use idempotent_consumer::Error::{Handler, Mismatch, MissingKey};

    const STAYS: &str = "The record is not marked and its offset not committed: it comes again at \
                         the next start";
    match error {
        Handler { at, source, .. } => format!(
            "{at} cannot be written: {source}. {STAYS}. To have such records set aside, and those \
             behind them written, name a topic with --dead-letter"
        ),
        MissingKey { at, source } => format!(
            "{at} has no key ({source}). {STAYS}. Have such records set aside with --dead-letter \
             TOPIC, or written unprotected with --missing-key pass"
        ),
        Mismatch { at, first } => format!(
            "{at} has the key of {first}, but another value: two records under one key. {STAYS}. \
             Have such records set aside with --dead-letter TOPIC, or, only if the producer's \
             copies differ by nature, dropped with --mismatch drop"
        ),
        other => other.to_string(),
    }
}

impl Error {
    pub(super) fn exit_code(&self) -> u8 {
        let lasts = match self {
            Self::Usage(_) | Self::Config { .. } | Self::Client(_) => true,
            Self::Store(error) => of_the_store(error),
            Self::Consumer(error) => of_the_consumer(error),
            _ => false,
        };
        if lasts { 2 } else { 1 }
    }
}

/// Whether a consumer's end would come again with every start. Two that shut each other out would
/// go on for ever under a supervisor that starts them again.
fn of_the_consumer(error: &idempotent_consumer::Error) -> bool {
    use idempotent_consumer::{
        Error::{DeadLetter, Outbox, Refused, Source, Store, TopicChanged},
        OutboxError::{Fenced, InUse},
    };

    match error {
        Refused(_)
        | TopicChanged { .. }
        | Outbox(Fenced { .. } | InUse { .. })
        | Source(SourceError::InstanceFenced { .. })
        | DeadLetter(DeadLetterError::Refused(_)) => true,
        Store(error) => of_the_store(error),
        _ => false,
    }
}

fn of_the_store(error: &StoreError) -> bool {
    use StoreError::{Foreign, OtherEngine, UnknownFormat};

    matches!(
        error,
        Foreign { .. } | OtherEngine { .. } | UnknownFormat { .. }
    )
}

#[cfg(test)]
mod tests {
    use idempotent_consumer::OutboxError;

    use super::*;

    #[test]
    fn what_no_start_mends_ends_with_2_and_what_one_may_mend_with_1() {
        let text = String::new;
        let fenced = OutboxError::Fenced {
            transactional_id: text(),
            message: text(),
        };
        let patience = OutboxError::Patience {
            transactional_id: text(),
            limit_ms: 1,
            message: text(),
        };
        let foreign = StoreError::Foreign {
            place: text(),
            what: "group",
            theirs: text(),
            ours: text(),
        };
        let locked = StoreError::Locked {
            path: PathBuf::new(),
            by: text(),
        };
        let instance = SourceError::InstanceFenced { message: text() };
        for (error, code) in [
            (Error::Consumer(fenced.into()), 2),
            (Error::Consumer(patience.into()), 1),
            (Error::Store(foreign), 2),
            (Error::Consumer(locked.into()), 1),
            (Error::Consumer(instance.into()), 2),
            (Error::Usage(text()), 2),
        ] {
            assert_eq!(error.exit_code(), code, "{error}");
        }
    }
}
