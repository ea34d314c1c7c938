//! What ends `dedup topic`, in the operator's words.

use std::{io, net::SocketAddr, path::PathBuf};

use idempotent_consumer::store::StoreError;

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
        match self {
            Self::Usage(_)
            | Self::Config { .. }
            | Self::Client(_)
            | Self::Consumer(idempotent_consumer::Error::Refused(_)) => 2,
            _ => 1,
        }
    }
}
