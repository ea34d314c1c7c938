//! `kafka-lab-slow`: delays large requests to a Kafka broker, so that producers time out and
//! send again.
//!
//! `serve` is the proxy; `on`, `off` and `status` reach it through a state file. Exit status: 0
//! done, 1 failed, 2 the command line is wrong.

mod args;
mod disk;
mod error;
mod file;
mod serve;
mod state;
mod status;
mod switch;

use std::io::Write;
use std::process::ExitCode;

use args::Command;
use error::Error;

const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let command = match args::parse(lexopt::Parser::from_env()) {
        Ok(command) => command,
        Err(error) => {
            complain(&format!("{error}\ntry 'kafka-lab-slow --help'"));
            return ExitCode::from(EXIT_USAGE);
        }
    };
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.with_causes());
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Error> {
    match command {
        Command::Help => say(args::HELP),
        Command::Version => say(concat!("kafka-lab-slow ", env!("CARGO_PKG_VERSION"))),
        Command::Serve(serve) => serve::run(&serve),
        Command::Switch(switch) => switch::run(&switch),
        Command::Status { state } => status::run(&state),
    }
}

/// Prints to standard output. A reader that has gone wants no more, which is no failure.
fn say(text: &str) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}

/// Prints to standard error; where that is closed there is nobody left to tell.
fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "kafka-lab-slow: {text}");
}
