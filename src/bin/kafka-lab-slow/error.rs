//! Why a command fails, in words for the person who ran it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use idempotent_consumer::testkit::ProxyError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot {action} {}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "the state file {} is damaged ({reason}); remove it to begin with 'off' and the default \
         settings, or name another with --state",
        path.display()
    )]
    Damaged { path: PathBuf, reason: String },
    #[error(
        "another serve{} runs with the state file {}; stop it, or name another file with --state",
        of_process(*process_id),
        path.display()
    )]
    AlreadyServing {
        path: PathBuf,
        process_id: Option<u32>,
    },
    #[error("another command has held {} for {} s; try again", path.display(), waited.as_secs())]
    Busy { path: PathBuf, waited: Duration },
    #[error(
        "stored in {}, but the running serve{} did not put it in force within {} s",
        path.display(),
        of_process(*process_id),
        waited.as_secs()
    )]
    NotConfirmed {
        path: PathBuf,
        process_id: Option<u32>,
        waited: Duration,
    },
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error("cannot wait for signals")]
    Signals(#[source] io::Error),
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
}

impl Error {
    pub(crate) fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File {
            action,
            path: path.to_owned(),
            source,
        }
    }

    /// The error and what caused it, on one line.
    pub(crate) fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}

fn of_process(process_id: Option<u32>) -> String {
    process_id.map_or_else(String::new, |id| format!(" (process {id})"))
}
