//! The command line and the environment: first what was typed, then what it means. Nothing is
//! opened here.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use lexopt::Arg::{Long, Short, Value};

use crate::{ages::Ages, error::Error, format::Format};

mod values;

/// The lab's own paths (consumer lab, step 6).
const DEFAULT_SEEN: &str = "/root/kafka/seen.txt";
/// Beside the script's file, and never in its place.
#[cfg(feature = "sled")]
const DEFAULT_STORE: &str = "/root/kafka/seen.store";
#[cfg(feature = "redb")]
const DEFAULT_REDB_STORE: &str = "/root/kafka/seen.redb";
const DEFAULT_OUT: &str = "/root/kafka/processed-dedup.txt";

/// What a store holds is what the out file is completed from.
const NO_TTL: &str = "--ttl is for --store text: a store keeps what belongs in the out file";

/// What the user wants.
#[derive(Debug)]
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
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) store: Store,
    pub(crate) seen: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) format: Format,
    /// Whether a line without a key ends the run.
    pub(crate) key_required: bool,
    pub(crate) wait: Duration,
    pub(crate) stats: Option<Stats>,
    /// Where they go instead of standard error.
    pub(crate) stats_file: Option<PathBuf>,
    pub(crate) progress: bool,
}

/// How the figures of a run are said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stats {
    Text,
    Json,
}

/// What was typed.
#[derive(Default)]
struct Typed {
    store: Option<OsString>,
    seen: Option<OsString>,
    out: Option<OsString>,
    wait: Option<OsString>,
    null: bool,
    key: Option<OsString>,
    delimiter: Option<OsString>,
    no_key: Option<OsString>,
    ttl: Option<OsString>,
    stats: Option<OsString>,
    stats_file: Option<OsString>,
    no_progress: bool,
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
            Long("store") => typed.store = value(&mut parser)?,
            Long("seen") => typed.seen = value(&mut parser)?,
            Long("out") => typed.out = value(&mut parser)?,
            Long("wait") => typed.wait = value(&mut parser)?,
            Short('z') | Long("null") => typed.null = true,
            Long("key") => typed.key = value(&mut parser)?,
            Long("delimiter") => typed.delimiter = value(&mut parser)?,
            Long("no-key") => typed.no_key = value(&mut parser)?,
            Long("ttl") => typed.ttl = value(&mut parser)?,
            Long("stats") => typed.stats = value(&mut parser)?,
            Long("stats-file") => typed.stats_file = value(&mut parser)?,
            Long("no-progress") => typed.no_progress = true,
            // Only as the first: behind an option it would be a mistake.
            Value(word) if first && word == "store" => return of_store(parser),
            Value(word) if first && word == "topic" => return of_topic(parser),
            other => return Err(usage(other.unexpected())),
        }
        first = false;
    }
    resolve(typed, environment).map(Command::Run)
}

fn value(parser: &mut lexopt::Parser) -> Result<Option<OsString>, Error> {
    parser.value().map(Some).map_err(usage)
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
    let store = typed
        .store
        .as_deref()
        .map_or(Ok(Store::Text), values::store)?;
    let ttl = typed.ttl.as_deref().map(values::ttl).transpose()?;
    if ttl.is_some() && store != Store::Text {
        return Err(Error::Usage(NO_TTL.to_owned()));
    }
    let ages = ttl.map(Ages::new);
    let format = values::format(typed.null, typed.key.as_deref(), typed.delimiter, ages)?;
    if typed.no_key.is_some() && format.recipe.is_line() {
        return Err(Error::Usage(
            "--no-key is for --key alone: a whole line always is a key".to_owned(),
        ));
    }
    let stats = typed.stats.as_deref().map(values::stats).transpose()?;
    let stats = stats.or(typed.verbose.then_some(Stats::Text));
    let stats_file = match typed.stats_file {
        Some(_) if stats.is_none() => {
            return Err(Error::Usage("--stats-file needs --stats".to_owned()));
        }
        Some(value) if value.is_empty() => {
            return Err(Error::Usage(
                "--stats-file is empty; it takes a path".to_owned(),
            ));
        }
        other => other.map(PathBuf::from),
    };
    Ok(Config {
        store,
        seen: path("--seen", typed.seen, "DEDUP_SEEN", store.default_path())?,
        out: path("--out", typed.out, "DEDUP_OUT", DEFAULT_OUT)?,
        key_required: values::key_required(typed.no_key.as_deref())?,
        format,
        wait: typed
            .wait
            .as_deref()
            .map_or(Ok(Duration::ZERO), values::wait)?,
        stats,
        stats_file,
        progress: !typed.no_progress,
    })
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
    use super::{values::WAIT_SECONDS_MAX, *};
    use crate::{help::HELP, lines, run};

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
        assert_eq!((config.wait, config.stats), (Duration::ZERO, None));
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
        assert_eq!(text.seen, config(&[], &[]).seen);
    }

    // C107
    #[test]
    fn an_empty_variable_is_an_unset_one() {
        let empty = [("DEDUP_SEEN", ""), ("DEDUP_OUT", "")];
        let (empty, unset) = (config(&[], &empty), config(&[], &[]));
        assert_eq!((empty.seen, empty.out), (unset.seen, unset.out));
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
