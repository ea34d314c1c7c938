//! `ship-process`: the consumer lab's shipping handler. It reads standard input to its end, then
//! appends the orders line by line to the processed file, and dies at `order-2` as long as its
//! bug is not fixed. `ship-process --help` says how to call it.
//!
//! The lab rests on what it does *not* do: it does not deduplicate, reorder or shorten, so that
//! "lost = committed - processed" and "duplicates = lines - distinct lines" come out right.
//!
//! With `--idempotent` it does not: an order is processed once, however often the lab rewinds.
//!
//! # Exit codes
//!
//! 0: every line is in the processed file. 1: it died at `order-2`, or reading or writing failed.
//! 2: the call is wrong.

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
};

use crate::{args::Command, error::Error};

mod args;
mod error;
#[cfg(feature = "sled")]
mod idempotent;
#[cfg(feature = "sled")]
#[path = "../journal/mod.rs"]
mod journal;
#[path = "../place/mod.rs"]
mod place;
mod processed;
mod run;

fn main() -> ExitCode {
    match dispatch() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error may be closed; the exit code still tells.
            let _ = writeln!(io::stderr(), "ship-process: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn dispatch() -> Result<(), Error> {
    match args::parse(env::args_os().skip(1), env::var_os)? {
        Command::Help => print(args::HELP),
        Command::Version => print(concat!("ship-process ", env!("CARGO_PKG_VERSION"), "\n")),
        Command::Run(config) => run::run(&config),
    }
}

/// Prints what the user asked for; that the reader saw enough of it is no failure.
fn print(text: &str) -> Result<(), Error> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Write {
            path: "standard output".into(),
            source: error,
        }),
        _ => Ok(()),
    }
}
