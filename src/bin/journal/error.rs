//! What can go wrong, and how to go on.

use std::{
    io,
    path::{Path, PathBuf},
};

use idempotent_consumer::store::StoreError;

use super::Program;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The store's refusal or failure in its own words.
    #[error(transparent)]
    Store(StoreError),

    #[error("the store at {path} is in use{by}; {advice}", path = path.display())]
    InUse {
        path: PathBuf,
        by: String,
        advice: &'static str,
    },

    /// The store's own words speak of groups; here they are programs.
    #[error(
        "{place} was filled by the program {theirs}, and this is {ours}: what it knows would be \
         wrong here. Name another store, or use it with {theirs}"
    )]
    OfAnother {
        place: String,
        theirs: String,
        ours: String,
    },

    /// The store's own words speak of a topic that is read again; here it is a file.
    #[error(
        "the store at {path} is damaged: {what}. It is not used. Put a copy of the directory \
         back, or move it away together with the file that the lines went to, and feed that file \
         to a new store first",
        path = path.display()
    )]
    Damaged { path: PathBuf, what: String },

    #[error("{path}: cannot read: {source}", path = path.display())]
    Read { path: PathBuf, source: io::Error },

    /// The store is ahead now, as after a crash.
    #[error(
        "{path}: cannot write: {source}; the lines are safe in the store and are written at the \
         next start: mend the cause and feed the same input again",
        path = path.display()
    )]
    Write { path: PathBuf, source: io::Error },

    /// The file is not what the store left.
    #[error(
        "{path} is {length} bytes long, and from byte {from} on not what the store {store} wrote. \
         Nothing was changed in it. Move it away and feed it as input: the store writes its own \
         lines anew, and of the others those that are new",
        path = path.display(),
        store = store.display()
    )]
    NotOurs {
        path: PathBuf,
        store: PathBuf,
        length: u64,
        from: u64,
    },
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged { path, what } => Self::Damaged { path, what },
            other => Self::Store(other),
        }
    }
}

impl Error {
    /// What the store says on being opened, in the words of this program.
    pub(super) fn of_store(error: StoreError, program: Program) -> Self {
        match error {
            StoreError::Locked { path, by } => Self::InUse {
                path,
                by,
                advice: program.when_in_use,
            },
            StoreError::Foreign {
                place,
                what: "group",
                theirs,
                ours,
            } => Self::OfAnother {
                place,
                theirs,
                ours,
            },
            other => other.into(),
        }
    }

    pub(super) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Read {
            path: path.to_path_buf(),
            source,
        }
    }

    pub(super) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Write {
            path: path.to_path_buf(),
            source,
        }
    }
}
