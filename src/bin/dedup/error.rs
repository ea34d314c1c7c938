//! What can go wrong, in the user's words: the path, the reason, the way out.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::recipe::NoKey;

/// Everything that ends the program early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The call itself is wrong.
    #[error("{0}; see 'dedup --help'")]
    Usage(String),

    /// A file or directory could not be used, and nothing was written yet.
    #[error("{path}: cannot {action}: {source}", path = path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },

    /// The path can be opened, and using it would lose or repeat lines.
    #[error("{path}: {reason}", path = path.display())]
    Refused { path: PathBuf, reason: &'static str },

    /// A path or a stream that cannot be used; nothing was opened or made.
    #[error(transparent)]
    Place(#[from] crate::place::Refusal),

    /// The file's marks were made by another recipe.
    #[error(
        "{path}: holds keys of '{theirs}', and this run's are '{ours}': what it knows would be \
         wrong here. Use the same --key and --delimiter as before, or another seen file",
        path = path.display()
    )]
    OtherKeys {
        path: PathBuf,
        theirs: String,
        ours: String,
    },

    /// All is done, and there is no saying so.
    #[error("{path}: cannot write the figures: {source}; every line is handled all the same",
        path = path.display())]
    FiguresUnsaid { path: PathBuf, source: io::Error },

    /// A line cannot be told from others.
    #[error(
        "standard input: line {line} has no key: {why}; the lines before it are handled. Mend \
         it, or pass such lines on each time they come with --no-key pass, and feed the same \
         input again"
    )]
    NoKey { line: u64, why: NoKey },

    /// The key that fingerprints are made under.
    #[error("cannot draw a random key: {0}")]
    Random(getrandom::Error),

    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),

    /// Another process works on the file.
    #[error(
        "{path}: in use by another writer{holder}; let it finish, or use --wait SECONDS",
        path = path.display(),
        holder = holder.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Locked { path: PathBuf, holder: Option<u32> },

    /// Standard input failed in the middle. The whole lines before that are handled.
    #[error("standard input: cannot read: {0}; feed the same input again")]
    Input(io::Error),

    /// Handing lines over failed. Those that were handed over are marked.
    #[error(
        "{path}: cannot write: {source}; the lines not written are not marked as seen: \
         mend the cause and feed the same input again",
        path = path.display()
    )]
    Output { path: PathBuf, source: io::Error },

    /// Lines were handed over and could not be marked.
    #[error(
        "{path}: cannot write: {source}; the last lines are written but not marked as seen, \
         and will be written once more when they come again",
        path = path.display()
    )]
    Mark { path: PathBuf, source: io::Error },

    /// The store, or the file that is kept in step with it.
    #[cfg(any(feature = "sled", feature = "redb"))]
    #[error(transparent)]
    Journal(#[from] crate::journal::Error),

    /// The call of `dedup store` is wrong.
    #[cfg(any(feature = "sled", feature = "redb"))]
    #[error("{0}; see 'dedup store --help'")]
    StoreUsage(String),

    /// The call of `dedup topic` is wrong.
    #[cfg(feature = "service")]
    #[error("{0}; see 'dedup topic --help'")]
    TopicUsage(String),

    /// What was to be forgotten is, and there is no saying so.
    #[cfg(any(feature = "sled", feature = "redb"))]
    #[error(
        "standard output: cannot write: {0}; what was named is forgotten all the same, see \
         'dedup store show DIR'"
    )]
    ForgottenUnsaid(io::Error),

    /// What was to be copied is, and there is no saying so.
    #[cfg(any(feature = "sled", feature = "redb"))]
    #[error(
        "standard output: cannot write: {0}; the copy is made and checked all the same, see \
         'dedup store show DIR'"
    )]
    CopiedUnsaid(io::Error),

    /// A consumer's store in its own words.
    #[cfg(any(feature = "sled", feature = "redb"))]
    #[error(transparent)]
    Store(idempotent_consumer::store::StoreError),

    /// The consumer runs.
    #[cfg(any(feature = "sled", feature = "redb"))]
    #[error(
        "{path}: in use{by}; stop the consumer first: nobody may be at work on a store that is \
         looked at or changed",
        path = path.display()
    )]
    StoreInUse { path: PathBuf, by: String },

    /// Standard output is the out file and its reader went away. A pipeline's own status tells
    /// whether the reader was content, so this is not a failure of ours.
    #[error("the reader of standard output is gone")]
    ReaderGone,
}

impl Error {
    /// An [`Error::Io`]: `action` completes "cannot …".
    pub(crate) fn io(action: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.as_ref().to_path_buf(),
            source,
        }
    }

    /// The process's exit code for this error.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::ReaderGone => 0,
            Self::Usage(_) => 2,
            #[cfg(any(feature = "sled", feature = "redb"))]
            Self::StoreUsage(_) => 2,
            #[cfg(feature = "service")]
            Self::TopicUsage(_) => 2,
            _ => 1,
        }
    }
}
