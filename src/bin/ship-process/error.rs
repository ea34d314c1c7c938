//! What ends the program early.

use std::{io, path::PathBuf};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The call itself is wrong.
    #[error("{0}; see 'ship-process --help'")]
    Usage(String),

    /// The processed file could not be used; standard input was not read.
    #[error("{path}: cannot open: {source}", path = path.display())]
    Open { path: PathBuf, source: io::Error },

    /// A path or a stream that cannot be used; nothing was opened or made.
    #[error(transparent)]
    Place(#[from] crate::place::Refusal),

    /// Nothing was written: the orders are handled only when all of them are there.
    #[error("standard input: cannot read: {0}; nothing was processed")]
    Input(io::Error),

    #[error("{path}: cannot write: {source}", path = path.display())]
    Write { path: PathBuf, source: io::Error },

    /// What the file is compared with at the next start must be a file.
    #[cfg(feature = "sled")]
    #[error("{path}: --idempotent needs a regular file, for it is read again at the next start",
        path = path.display())]
    NotAFile { path: PathBuf },

    #[cfg(feature = "sled")]
    #[error("{path}: in use by another process; let it finish", path = path.display())]
    Locked { path: PathBuf },

    #[cfg(feature = "sled")]
    #[error(transparent)]
    Journal(#[from] crate::journal::Error),

    /// The bug that the lab is about.
    #[error("died at order-2 with {processed} lines processed; set SHIP_FIXED=1 to fix it")]
    Died { processed: usize },
}

impl Error {
    /// The process's exit code for this error.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            _ => 1,
        }
    }
}
