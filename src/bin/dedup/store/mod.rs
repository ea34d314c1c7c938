//! `dedup store`: a consumer's store, looked at and made to forget.

use std::{io, path::Path};

use idempotent_consumer::store::{SledStore, StoreError};

pub(crate) use self::args::{Command, HELP, parse};
use crate::error::Error;

mod args;
mod forget;
mod show;

/// Does what was asked for and says what came of it.
///
/// # Errors
/// Where the store cannot be used, or does not have what is to be forgotten.
pub(crate) fn run(command: &Command) -> Result<String, Error> {
    match command {
        Command::Help => Ok(HELP.to_owned()),
        Command::Show { directory } => Ok(show::text(directory, &open(directory)?.inspect())),
        Command::Forget {
            directory,
            forget,
            yes,
        } => forget::run(directory, open(directory)?, forget, *yes),
    }
}

/// Opens a store that is there: a mistyped path must not begin one.
fn open(directory: &Path) -> Result<SledStore, Error> {
    match SledStore::options().create(false).open(directory) {
        Ok(store) => Ok(store),
        Err(StoreError::Unusable { path, source }) if source.kind() == io::ErrorKind::NotFound => {
            Err(Error::Refused {
                path,
                reason: "there is no store; name the directory that the consumer opens",
            })
        }
        Err(StoreError::Locked { path, by }) => Err(Error::StoreInUse { path, by }),
        Err(error) => Err(Error::Store(error)),
    }
}
