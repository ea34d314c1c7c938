//! `dedup`: passes on each line of standard input that it has not passed on before, also over
//! restarts. A drop-in for the consumer lab's `dedup.sh`: the state is the script's own two text
//! files, and either may go on where the other stopped. `dedup --help` says how to call it.
//!
//! With `--store sled` the state is a store of the library's instead; see `stored.rs`. And
//! `dedup store` looks at a consumer's store, or has it forget; see `store/`. `dedup topic` is a
//! service between two topics; see `topic/`.
//!
//! # What holds for the text files
//!
//! - A line is written to the out file, and is on disk there, before it is marked in the seen
//!   file. So whatever stops the program (a signal, a full disk, a power cut, a reader that goes
//!   away), a line is never marked without having been handed over. Feed the same input again.
//! - What such a stop may cost is a repetition: the lines of the batch in flight, at most 4 MiB
//!   and one line, may be written a second time by the next run. Into a pipe it is at most 64 KiB
//!   and one line, unless the power fails.
//! - Lines are bytes and are compared as bytes, whatever the locale; nothing is trimmed. A last
//!   line without newline counts and is written with one.
//! - A file that ends in the middle of a line is mended on the next run; see [`plain`].
//! - With `--key` a part of the line is marked, and decides; the whole line is written.
//! - One `dedup` at a time works on a seen file and on an out file. The lock is advisory: a shell
//!   script beside it does not see it.
//!
//! # Exit codes
//!
//! 0: every line was handled, or standard output was the out file and its reader went away.
//! 1: something failed; what was handed over until then is marked. 2: the call is wrong.

use std::{env, io, io::Write, process::ExitCode};

use crate::{args::Command, error::Error, report::Report};

mod ages;
mod append;
mod args;
mod chunk;
mod compact;
mod error;
mod files;
mod format;
mod help;
mod index;
#[cfg(any(feature = "sled", feature = "redb"))]
#[path = "../journal/mod.rs"]
mod journal;
mod lines;
mod lock;
mod output;
#[path = "../place/mod.rs"]
mod place;
mod plain;
mod progress;
mod recipe;
mod report;
mod run;
mod seen;
mod stats;
mod stdin;
#[cfg(any(feature = "sled", feature = "redb"))]
mod store;
#[cfg(any(feature = "sled", feature = "redb"))]
mod stored;
mod table;
#[cfg(feature = "service")]
mod topic;
mod writer;

fn main() -> ExitCode {
    match dispatch() {
        Ok(code) => code,
        Err(Error::ReaderGone) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::from(error.exit_code())
        }
    }
}

fn dispatch() -> Result<ExitCode, Error> {
    match args::parse(env::args_os().skip(1), env::var_os)? {
        Command::Help => print(help::HELP)?,
        Command::Version => print(concat!("dedup ", env!("CARGO_PKG_VERSION"), "\n"))?,
        #[cfg(feature = "service")]
        Command::Topic(topic::Command::Help) => print(topic::HELP)?,
        #[cfg(feature = "service")]
        Command::Topic(topic::Command::Run(typed)) => return Ok(topic::run(typed)),
        #[cfg(any(feature = "sled", feature = "redb"))]
        Command::Store(command) => {
            let text = store::run(&command)?;
            print(&text).map_err(|error| command.unsaid(error))?;
        }
        Command::Run(config) => {
            // First: what cannot be told at the end is refused at the start.
            let report = Report::open(&config)?;
            report.give(&run::run(&config)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what the user asked for. `print!` would panic where the reader has gone.
fn print(text: &str) -> Result<(), Error> {
    io::stdout()
        .write_all(text.as_bytes())
        .map_err(|source| match source.kind() {
            io::ErrorKind::BrokenPipe => Error::ReaderGone,
            _ => Error::io("write", "standard output", source),
        })
}

/// Tells the user something on standard error. That nobody can be told is no reason to stop:
/// the exit code still says how it went.
fn say(message: &str) {
    let _ = writeln!(io::stderr(), "dedup: {message}");
}
