//! The command line and the environment.

use std::{ffi::OsString, path::PathBuf};

use lexopt::Arg::{Long, Short};

use crate::error::Error;

/// The lab's own path.
const DEFAULT_PROCESSED: &str = "/root/kafka/processed.txt";

pub(crate) const HELP: &str = "\
Usage: ship-process [OPTIONS] < ORDERS

Reads all of standard input (into memory), then appends it line by line to the
processed file.
Dies at the line 'order-2' unless SHIP_FIXED is 1; the lines before it stay.

Options:
      --processed PATH  the file that is appended to, created when it is missing
                        [default: /root/kafka/processed.txt]
      --idempotent      process each order once, however often it comes: orders
                        are recorded in a store before they are appended, and
                        what the file lacks of them is appended at the next
                        start, so that a stop at any moment neither loses nor
                        repeats one. An order that was processed before is
                        skipped, order-2 too. The file must be the store's own
                        from the first byte on
      --state DIR       the store, created when missing, though not the
                        directory that it is in; implies --idempotent
                        [default: the processed file's path with .store at its
                        end]
  -h, --help            print this
  -V, --version         print the version

Environment:
  SHIP_PROCESSED  as --processed, which comes first; empty means unset
  SHIP_FIXED      exactly 1: order-2 is processed like any other line

Exit codes:
  0  every line is in the processed file
  1  it died at order-2, or reading or writing failed; also when the reader of a
     pipe went away before it had every line
  2  the call is wrong
";

/// What the user wants.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Run(Config),
    Help,
    Version,
}

/// A run, every default filled in.
#[derive(Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) processed: PathBuf,
    pub(crate) fixed: bool,
    /// The store's directory, when each order is to be processed once.
    #[cfg(feature = "sled")]
    pub(crate) state: Option<PathBuf>,
}

/// Reads the arguments (without the program's name) and the environment.
///
/// # Errors
/// [`Error::Usage`] names the argument that is wrong.
pub(crate) fn parse(
    args: impl IntoIterator<Item = OsString>,
    environment: impl Fn(&'static str) -> Option<OsString>,
) -> Result<Command, Error> {
    let usage = |error: lexopt::Error| Error::Usage(error.to_string());
    let mut parser = lexopt::Parser::from_args(args);
    let mut processed = environment("SHIP_PROCESSED").filter(|value| !value.is_empty());
    let (mut idempotent, mut state) = (false, None);
    while let Some(arg) = parser.next().map_err(usage)? {
        match arg {
            Short('h') | Long("help") => return Ok(Command::Help),
            Short('V') | Long("version") => return Ok(Command::Version),
            Long("processed") => processed = Some(parser.value().map_err(usage)?),
            Long("idempotent") => idempotent = true,
            Long("state") => state = Some(parser.value().map_err(usage)?),
            other => return Err(usage(other.unexpected())),
        }
    }
    let processed = processed.unwrap_or_else(|| DEFAULT_PROCESSED.into());
    if processed.is_empty() {
        return Err(Error::Usage("--processed is empty; it takes a path".into()));
    }
    if state.as_ref().is_some_and(|state| state.is_empty()) {
        return Err(Error::Usage(
            "--state is empty; it takes a directory".into(),
        ));
    }
    let state = state.or_else(|| {
        let mut beside = processed.clone();
        beside.push(".store");
        idempotent.then_some(beside)
    });
    #[cfg(not(feature = "sled"))]
    if state.is_some() {
        let absent = "--idempotent is not in this build; build with the feature 'sled'";
        return Err(Error::Usage(absent.into()));
    }
    let fixed = environment("SHIP_FIXED").is_some_and(|value| value == "1");
    Ok(Command::Run(Config {
        processed: processed.into(),
        fixed,
        #[cfg(feature = "sled")]
        state: state.map(PathBuf::from),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_default_is_the_labs_and_an_empty_variable_leaves_it() {
        assert!(HELP.contains(DEFAULT_PROCESSED));
        for environment in [&[][..], &[("SHIP_PROCESSED", ""), ("SHIP_FIXED", "")]] {
            let config = config(&[], environment);
            assert_eq!(config.processed, PathBuf::from("/root/kafka/processed.txt"));
            assert!(!config.fixed);
        }
    }

    #[test]
    fn a_flag_comes_before_its_variable() {
        let environment = [("SHIP_PROCESSED", "from-env")];
        assert_eq!(
            config(&[], &environment).processed,
            PathBuf::from("from-env")
        );
        assert_eq!(
            config(&["--processed", "flag"], &environment).processed,
            PathBuf::from("flag")
        );
    }

    #[test]
    #[cfg(feature = "sled")]
    fn a_state_directory_alone_is_the_wish_to_be_idempotent() {
        let state = |args| config(args, &[("SHIP_PROCESSED", "dir/file")]).state;
        assert_eq!(state(&[]), None);
        assert_eq!(state(&["--idempotent"]), Some("dir/file.store".into()));
        assert_eq!(state(&["--state", "seen"]), Some("seen".into()));
        assert_eq!(
            state(&["--idempotent", "--state=seen"]),
            Some("seen".into())
        );
    }
}
