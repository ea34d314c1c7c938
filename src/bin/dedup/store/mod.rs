//! `dedup store`: a consumer's store, looked at, made to forget, copied.

use idempotent_consumer::store::{DirectoryStore, Engine};

pub(crate) use self::args::{Command, HELP, parse};
use self::spec::Opened;
use crate::error::Error;

mod args;
mod copy;
mod forget;
mod show;
mod spec;

/// Does what was asked for and says what came of it.
///
/// # Errors
/// Where the store cannot be used, or does not have what is to be forgotten.
pub(crate) fn run(command: &Command) -> Result<String, Error> {
    let spec = match command {
        Command::Help => return Ok(HELP.to_owned()),
        Command::Show { store } | Command::Forget { store, .. } => store,
        Command::Copy { from, .. } => from,
    };
    match spec.open()? {
        #[cfg(feature = "sled")]
        Opened::Sled(store) => on(*store, command),
        #[cfg(feature = "redb")]
        Opened::Redb(store) => on(*store, command),
    }
}

fn on<E: Engine>(store: DirectoryStore<E>, command: &Command) -> Result<String, Error> {
    match command {
        Command::Help => Ok(HELP.to_owned()),
        Command::Show { store: spec } => Ok(show::text(&spec.directory, &store.inspect())),
        Command::Forget {
            store: spec,
            forget,
            yes,
        } => forget::run(&spec.directory, store, forget, *yes),
        Command::Copy { from, to, yes } => copy::run(from, &store, (to.0, &to.1), *yes),
    }
}
