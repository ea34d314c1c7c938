//! `dedup topic`: a service between two topics, for those who write no Rust.
//!
//! The library's own consumer with a store whose commits are Kafka transactions; the handler sends
//! each new record on. Here are only the settings, and what a service has around it.

use std::{env, process::ExitCode};

pub(crate) use self::args::{Command, HELP, parse};
use self::{args::Typed, config::Config, error::Error, settings::Settings};
use crate::say;

mod args;
mod broker;
mod clients;
mod config;
mod copy;
mod error;
mod figures;
mod file;
mod health;
mod log;
mod names;
mod recipe;
mod run;
mod serve;
mod settings;
mod watched;

/// Runs the service and says how it ended.
pub(crate) fn run(typed: Typed) -> ExitCode {
    // Until it is known how to say things, they are said as everywhere.
    let settings = Settings::gather(typed, env::vars_os());
    let gathered = settings.and_then(|settings| Ok((config::log(&settings)?, settings)));
    let ((format, level), settings) = match gathered {
        Ok(gathered) => gathered,
        Err(error) => {
            say(&error.to_string());
            return ExitCode::from(error.exit_code());
        }
    };
    log::begin(format, level);
    match configured(&settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn configured(settings: &Settings) -> Result<(), Error> {
    let config = Config::new(settings)?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    run::run(config)
}
