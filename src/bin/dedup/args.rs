//! The command line and the environment: first what was typed, then what it means. Nothing is
//! opened here.

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
    time::Duration,
};

use lexopt::Arg::{Long, Short, Value};

use crate::error::Error;

/// The lab's own paths (consumer lab, step 6).
const DEFAULT_SEEN: &str = "/root/kafka/seen.txt";
/// Beside the script's file, and never in its place.
#[cfg(feature = "sled")]
const DEFAULT_STORE: &str = "/root/kafka/seen.store";
#[cfg(feature = "redb")]
const DEFAULT_REDB_STORE: &str = "/root/kafka/seen.redb";
const DEFAULT_OUT: &str = "/root/kafka/processed-dedup.txt";

/// A wait is for a writer that is about to finish, not a schedule.
const WAIT_SECONDS_MAX: u64 = 86_400;

pub(crate) const HELP: &str = "\
Usage: dedup [OPTIONS] < LINES
       dedup store --help
       dedup topic --help

Reads lines from standard input. A line that was not seen before is appended to
the out file and remembered. Lines are compared as bytes. What was seen stays
seen over restarts and crashes.

Options:
      --store KIND    how the lines seen are kept  [default: text]
                      text: in a file, one a line, as the lab's script does
                      sled: in a store directory; out is kept in step with it
                      redb: the same, where this build has the feature 'redb'
      --seen PATH     where they are kept: a regular file, or with a store a
                      directory; created when missing, though not the
                      directory that it is in
                      [default: /root/kafka/seen.txt,
                      with --store sled /root/kafka/seen.store,
                      with --store redb /root/kafka/seen.redb]
      --out PATH      where new lines go: a file, which is appended to, a pipe
                      or a device  [default: /root/kafka/processed-dedup.txt]
      --wait SECONDS  wait up to this long for another dedup that uses a file
                      [default: 0, fail at once; at most 86400]
  -v, --verbose       say on standard error what was done
  -h, --help          print this
  -V, --version       print the version

Environment:
  DEDUP_SEEN, DEDUP_OUT  as --seen and --out, which win; empty means unset

What holds with --store text:
  New lines are on disk in the out file before they are marked as seen, so a
  stop at any moment loses none: feed the same input again. The lines in flight
  at the stop, at most 4 MiB and one line, may then be written twice.
  A file that does not end in a newline gets one before anything is appended.

What holds with --store sled or redb:
  Lines are recorded in the store, each record atomic and durable, before they
  are appended to the out file. The next start appends what the file lacks of
  them, so a stop at any moment neither loses nor repeats a line.
  So out belongs to the store: if it is missing, all of it is written again; for
  a new out use a new store. If somebody else wrote into it, it is refused and
  left as it is. To go on from older files, move out away and feed it.
  A pipe, a device and standard output cannot be looked at again: there the
  lines are written first and recorded then, and those in flight at a stop may
  come twice, as with --store text.

Exit codes:
  0  every line was handled (or the reader of standard output went away)
  1  a file could not be used, read or written; what was handed over is marked
  2  the call is wrong
";

/// What the user wants.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Run(Config),
    /// What a consumer's store is asked or told.
    #[cfg(any(feature = "sled", feature = "redb"))]
    Store(crate::store::Command),
    /// A service between two topics.
    #[cfg(feature = "service")]
    Topic(crate::topic::Command),
    Help,
    Version,
}

/// How the lines seen are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Store {
    Text,
    #[cfg(feature = "sled")]
    Sled,
    #[cfg(feature = "redb")]
    Redb,
}

impl Store {
    fn default_path(self) -> &'static str {
        match self {
            Self::Text => DEFAULT_SEEN,
            #[cfg(feature = "sled")]
            Self::Sled => DEFAULT_STORE,
            #[cfg(feature = "redb")]
            Self::Redb => DEFAULT_REDB_STORE,
        }
    }
}

/// A run, every default filled in.
#[derive(Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) store: Store,
    pub(crate) seen: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) wait: Duration,
    pub(crate) verbose: bool,
}

/// What was typed.
#[derive(Default)]
struct Typed {
    store: Option<OsString>,
    seen: Option<OsString>,
    out: Option<OsString>,
    wait: Option<OsString>,
    verbose: bool,
}

/// Reads the arguments (without the program's name) and the environment.
///
/// # Errors
/// [`Error::Usage`] names the argument that is wrong.
pub(crate) fn parse(
    args: impl IntoIterator<Item = OsString>,
    environment: impl Fn(&'static str) -> Option<OsString>,
) -> Result<Command, Error> {
    let mut parser = lexopt::Parser::from_args(args);
    let mut typed = Typed::default();
    let mut first = true;
    while let Some(arg) = parser.next().map_err(usage)? {
        match arg {
            Short('h') | Long("help") => return Ok(Command::Help),
            Short('V') | Long("version") => return Ok(Command::Version),
            Short('v') | Long("verbose") => typed.verbose = true,
            Long("store") => typed.store = Some(parser.value().map_err(usage)?),
            Long("seen") => typed.seen = Some(parser.value().map_err(usage)?),
            Long("out") => typed.out = Some(parser.value().map_err(usage)?),
            Long("wait") => typed.wait = Some(parser.value().map_err(usage)?),
            // Only as the first: behind an option it would be a mistake.
            Value(word) if first && word == "store" => return of_store(parser),
            Value(word) if first && word == "topic" => return of_topic(parser),
            other => return Err(usage(other.unexpected())),
        }
        first = false;
    }
    resolve(typed, environment).map(Command::Run)
}

#[cfg(any(feature = "sled", feature = "redb"))]
fn of_store(parser: lexopt::Parser) -> Result<Command, Error> {
    crate::store::parse(parser).map(Command::Store)
}

#[cfg(not(any(feature = "sled", feature = "redb")))]
fn of_store(_: lexopt::Parser) -> Result<Command, Error> {
    Err(Error::Usage(
        "'dedup store' is not in this build; build with the feature 'sled' or 'redb'".to_owned(),
    ))
}

#[cfg(feature = "service")]
fn of_topic(parser: lexopt::Parser) -> Result<Command, Error> {
    crate::topic::parse(parser).map(Command::Topic)
}

#[cfg(not(feature = "service"))]
fn of_topic(_: lexopt::Parser) -> Result<Command, Error> {
    Err(Error::Usage(
        "'dedup topic' is not in this build; build with the feature 'service'".to_owned(),
    ))
}

fn resolve(
    typed: Typed,
    environment: impl Fn(&'static str) -> Option<OsString>,
) -> Result<Config, Error> {
    // A variable set to nothing is what a script leaves behind that meant to unset it; a flag
    // with an empty value is a variable that was expanded and should not have been empty.
    let path = |flag: &str, typed: Option<OsString>, variable, default: &str| match typed {
        Some(value) if value.is_empty() => {
            Err(Error::Usage(format!("{flag} is empty; it takes a path")))
        }
        Some(value) => Ok(PathBuf::from(value)),
        None => Ok(environment(variable)
            .filter(|value| !value.is_empty())
            .map_or_else(|| PathBuf::from(default), PathBuf::from)),
    };
    let store = typed.store.as_deref().map_or(Ok(Store::Text), store)?;
    Ok(Config {
        store,
        seen: path("--seen", typed.seen, "DEDUP_SEEN", store.default_path())?,
        out: path("--out", typed.out, "DEDUP_OUT", DEFAULT_OUT)?,
        wait: typed.wait.as_deref().map_or(Ok(Duration::ZERO), wait)?,
        verbose: typed.verbose,
    })
}

fn store(typed: &OsStr) -> Result<Store, Error> {
    match typed.to_str() {
        Some("text") => Ok(Store::Text),
        #[cfg(feature = "sled")]
        Some("sled") => Ok(Store::Sled),
        #[cfg(feature = "redb")]
        Some("redb") => Ok(Store::Redb),
        #[cfg(not(feature = "sled"))]
        Some("sled") => Err(absent("sled")),
        #[cfg(not(feature = "redb"))]
        Some("redb") => Err(absent("redb")),
        _ => Err(Error::Usage(format!(
            "--store takes text, sled or redb, not '{}'",
            typed.to_string_lossy()
        ))),
    }
}

#[cfg(not(all(feature = "sled", feature = "redb")))]
fn absent(kind: &str) -> Error {
    Error::Usage(format!(
        "--store {kind} is not in this build; build with the feature '{kind}'"
    ))
}

fn wait(typed: &OsStr) -> Result<Duration, Error> {
    match typed.to_str().and_then(|text| text.parse().ok()) {
        Some(seconds) if seconds <= WAIT_SECONDS_MAX => Ok(Duration::from_secs(seconds)),
        _ => Err(Error::Usage(format!(
            "--wait takes whole seconds from 0 to {WAIT_SECONDS_MAX}, not '{}'",
            typed.to_string_lossy()
        ))),
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err takes"
)]
fn usage(error: lexopt::Error) -> Error {
    Error::Usage(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{lines, run};

    fn config(args: &[&str], environment: &[(&str, &str)]) -> Config {
        let lookup = |name: &str| {
            environment
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.into())
        };
        match parse(args.iter().map(OsString::from), lookup) {
            Ok(Command::Run(config)) => config,
            other => panic!("{args:?} gave {other:?}"),
        }
    }

    #[test]
    fn without_flags_and_variables_the_paths_are_the_labs() {
        let config = config(&[], &[]);
        assert_eq!(config.seen, PathBuf::from("/root/kafka/seen.txt"));
        assert_eq!(config.out, PathBuf::from("/root/kafka/processed-dedup.txt"));
        assert_eq!((config.wait, config.verbose), (Duration::ZERO, false));
    }

    #[test]
    #[cfg(feature = "sled")]
    fn a_store_has_a_default_of_its_own_and_the_same_flag_and_variable() {
        let seen = |args, environment| config(args, environment).seen;
        let sled = ["--store", "sled"];
        assert_eq!(seen(&sled, &[]), PathBuf::from("/root/kafka/seen.store"));
        assert!(HELP.contains(DEFAULT_STORE));
        let environment = [("DEDUP_SEEN", "from-env")];
        assert_eq!(seen(&sled, &environment), PathBuf::from("from-env"));
        let text = config(&["--store=text"], &[]);
        assert_eq!(text, config(&[], &[]));
    }

    // C107
    #[test]
    fn an_empty_variable_is_an_unset_one() {
        let empty = [("DEDUP_SEEN", ""), ("DEDUP_OUT", "")];
        assert_eq!(config(&[], &empty), config(&[], &[]));
    }

    #[test]
    fn a_flag_comes_before_its_variable() {
        let environment = [("DEDUP_SEEN", "from-env"), ("DEDUP_OUT", "from-env")];
        let config = config(&["--seen=flag"], &environment);
        assert_eq!(config.seen, PathBuf::from("flag"));
        assert_eq!(config.out, PathBuf::from("from-env"));
    }

    #[test]
    fn the_help_names_the_defaults_that_hold() {
        for text in [
            DEFAULT_SEEN,
            DEFAULT_OUT,
            &format!("at most {WAIT_SECONDS_MAX}"),
        ] {
            assert!(HELP.contains(text), "{text}");
        }
        let batch = format!(
            "at most {} MiB",
            (run::BATCH_BYTES + lines::BUFFER_BYTES) >> 20
        );
        assert!(HELP.contains(&batch), "{batch}");
    }
}
