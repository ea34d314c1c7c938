//! What follows `dedup store`.

use std::{
    ffi::{OsStr, OsString},
    ops::Range,
    os::unix::ffi::OsStringExt as _,
    path::PathBuf,
};

use idempotent_consumer::{TopicPartition, store::Forget};
use lexopt::Arg::{Long, Short, Value};

use super::spec::{Kind, Spec};
use crate::error::Error;

pub(crate) const HELP: &str = "\
Usage: dedup store show STORE
       dedup store forget STORE WHAT --topic TOPIC [--partition NUMBER] [--yes]
       dedup store copy --from STORE --to KIND:DIR [--yes]

Looks at a consumer's store; has it forget what was done, so that a corrected
handler gets those records once more; or copies it into a new one, mostly of
the other kind. Stop the consumer first.

STORE is the store's directory, or with its kind sled:DIR or redb:DIR.

WHAT is one of:
      --key KEY                 a key, as the recipe finds it in a record
      --key-hex HEX             the same in hexadecimal digits, for any bytes
      --cloud-event SOURCE ID   the key of a CloudEvent
      --offsets FROM..TO        offsets of a partition, from FROM up to TO - 1
      --all                     all of the topic, or of one partition

Options:
      --from STORE        the store to be copied; nothing of it is changed
      --to KIND:DIR       what it is copied into, sled:DIR or redb:DIR; DIR must
                          be empty or not there. Keys, results, positions and
                          hash key are the same, which is checked
      --topic TOPIC       the topic
      --partition NUMBER  one partition of it; with a key only where the store
                          has scope partition
      --yes               do it; without it is only said what would be done
  -h, --help              print this

What is forgotten is handled once more at the next start, whatever offset the
group has committed. Records that were skipped as copies stay skipped. The token
that a handler gets is the same as it was.

Exit codes:
  0  done, or said
  1  the store could not be used, or there is nothing of it to forget
  2  the call is wrong
";

/// What the user wants.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Help,
    Show {
        store: Spec,
    },
    Forget {
        store: Spec,
        forget: Forget,
        yes: bool,
    },
    Copy {
        from: Spec,
        to: (Kind, PathBuf),
        yes: bool,
    },
}

impl Command {
    /// What it means that nobody could be told what was done.
    pub(crate) fn unsaid(&self, error: Error) -> Error {
        match (self, error) {
            (Self::Forget { yes: true, .. }, Error::Io { source, .. }) => {
                Error::ForgottenUnsaid(source)
            }
            (Self::Copy { yes: true, .. }, Error::Io { source, .. }) => Error::CopiedUnsaid(source),
            (_, error) => error,
        }
    }
}

/// How records are named.
enum What {
    Key(Vec<u8>),
    CloudEvent([Vec<u8>; 2]),
    Offsets(Range<i64>),
    All,
}

#[derive(Default)]
struct Typed {
    from: Option<OsString>,
    to: Option<OsString>,
    what: Option<What>,
    topic: Option<String>,
    partition: Option<i32>,
    yes: bool,
}

impl Typed {
    fn names(&mut self, what: What) -> Result<(), Error> {
        match self.what.replace(what) {
            None => Ok(()),
            Some(_) => Err(wrong("what to forget is named twice")),
        }
    }
}

/// The last of two is what other programs take; here it could forget what was not meant.
fn once(flag: &str, given: bool) -> Result<(), Error> {
    if given {
        return Err(wrong(&format!("{flag} is given twice")));
    }
    Ok(())
}

/// Reads what is left behind the word `store`.
///
/// # Errors
/// [`Error::Usage`] names the argument that is wrong.
pub(crate) fn parse(mut parser: lexopt::Parser) -> Result<Command, Error> {
    let (mut words, mut typed) = (Vec::new(), Typed::default());
    while let Some(arg) = parser.next().map_err(|error| usage(&error))? {
        match arg {
            Short('h') | Long("help") => return Ok(Command::Help),
            Value(word) if words.len() < 2 => words.push(word),
            Long("from") => {
                let from = value(&mut parser)?;
                once("--from", typed.from.replace(from).is_some())?;
            }
            Long("to") => {
                let to = value(&mut parser)?;
                once("--to", typed.to.replace(to).is_some())?;
            }
            Long("topic") => {
                let topic = name("--topic", value(&mut parser)?)?;
                once("--topic", typed.topic.replace(topic).is_some())?;
            }
            Long("partition") => {
                let number = partition(&value(&mut parser)?)?;
                once("--partition", typed.partition.replace(number).is_some())?;
            }
            Long("yes") => typed.yes = true,
            Long("key") => typed.names(What::Key(value(&mut parser)?.into_vec()))?,
            Long("key-hex") => typed.names(What::Key(hex(&value(&mut parser)?)?))?,
            Long("cloud-event") => {
                let source = value(&mut parser)?.into_vec();
                let id = value(&mut parser)?.into_vec();
                typed.names(What::CloudEvent([source, id]))?;
            }
            Long("offsets") => typed.names(What::Offsets(offsets(&value(&mut parser)?)?))?,
            Long("all") => typed.names(What::All)?,
            other => return Err(usage(&other.unexpected())),
        }
    }
    let mut words = words.into_iter();
    let (verb, directory) = (words.next(), words.next());
    resolve(verb, directory, typed)
}

fn resolve(
    verb: Option<OsString>,
    directory: Option<OsString>,
    typed: Typed,
) -> Result<Command, Error> {
    let named = typed.what.is_some() || typed.topic.is_some() || typed.partition.is_some();
    let copied = typed.from.is_some() || typed.to.is_some();
    let verb = verb.unwrap_or_default();
    if verb == "copy" {
        if named || directory.is_some() {
            return Err(wrong("copy takes --from, --to and --yes, and nothing else"));
        }
        return copy(typed);
    }
    if verb != "show" && verb != "forget" {
        return Err(wrong("the word behind 'store' is show, forget or copy"));
    }
    if copied {
        return Err(wrong("--from and --to are for copy"));
    }
    let store = spec(directory.unwrap_or_default())?;
    if verb == "show" {
        if named || typed.yes {
            return Err(wrong("show takes a store and nothing else"));
        }
        return Ok(Command::Show { store });
    }
    forget(store, typed)
}

fn copy(typed: Typed) -> Result<Command, Error> {
    let missing = |flag| move || wrong(&format!("{flag} is missing"));
    let from = spec(typed.from.ok_or_else(missing("--from"))?)?;
    let to = spec(typed.to.ok_or_else(missing("--to"))?)?;
    let kind = to.kind.ok_or_else(|| {
        wrong("--to takes sled:DIR or redb:DIR: a new store does not say what it is")
    })?;
    Ok(Command::Copy {
        from,
        to: (kind, to.directory),
        yes: typed.yes,
    })
}

fn spec(typed: OsString) -> Result<Spec, Error> {
    Spec::parse(typed).map_err(|what| wrong(&what))
}

fn forget(store: Spec, typed: Typed) -> Result<Command, Error> {
    let topic = typed
        .topic
        .ok_or_else(|| wrong("--topic is missing: keys belong to a topic"))?;
    let what = typed.what.ok_or_else(|| {
        wrong("say what to forget: --key, --key-hex, --cloud-event, --offsets or --all")
    })?;
    let in_one = typed
        .partition
        .map(|number| TopicPartition::new(topic.as_str(), number));
    let forget = match (what, in_one) {
        (What::Offsets(offsets), Some(partition)) => Forget::offsets(&partition, offsets),
        (What::Offsets(_), None) => {
            return Err(wrong("--offsets needs --partition: each counts by itself"));
        }
        (What::All, Some(partition)) => Forget::partition(&partition),
        (What::All, None) => Forget::topic(topic),
        (What::Key(key), one) => within(Forget::key(topic, key), one),
        (What::CloudEvent([source, id]), one) => {
            within(Forget::cloud_event(topic, source, id), one)
        }
    };
    let yes = typed.yes;
    Ok(Command::Forget { store, forget, yes })
}

fn within(forget: Forget, partition: Option<TopicPartition>) -> Forget {
    match partition {
        Some(one) => forget.in_partition(one.partition()),
        None => forget,
    }
}

fn value(parser: &mut lexopt::Parser) -> Result<OsString, Error> {
    parser.value().map_err(|error| usage(&error))
}

fn name(flag: &str, typed: OsString) -> Result<String, Error> {
    match typed.into_string() {
        Ok(text) if !text.is_empty() => Ok(text),
        _ => Err(wrong(&format!("{flag} takes a name"))),
    }
}

fn partition(typed: &OsStr) -> Result<i32, Error> {
    let number = typed.to_str().and_then(|text| text.parse().ok());
    number.filter(|number| *number >= 0).ok_or_else(|| {
        let typed = typed.to_string_lossy();
        wrong(&format!("--partition takes a number from 0, not '{typed}'"))
    })
}

fn offsets(typed: &OsStr) -> Result<Range<i64>, Error> {
    let range = typed.to_str().and_then(|text| text.split_once(".."));
    let range = range.and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range
        .filter(|range| range.start >= 0 && !range.is_empty())
        .ok_or_else(|| {
            let typed = typed.to_string_lossy();
            wrong(&format!(
                "--offsets takes two numbers, the second the greater, as 5..7 for 5 and 6; not \
                 '{typed}'"
            ))
        })
}

fn hex(typed: &OsStr) -> Result<Vec<u8>, Error> {
    let bad = || {
        let typed = typed.to_string_lossy();
        wrong(&format!(
            "--key-hex takes pairs of hexadecimal digits, not '{typed}'"
        ))
    };
    let digits = typed.as_encoded_bytes();
    if digits.len() % 2 != 0 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(bad());
    }
    let pairs = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    pairs.collect::<Option<_>>().ok_or_else(bad)
}

fn usage(error: &lexopt::Error) -> Error {
    wrong(&error.to_string())
}

fn wrong(what: &str) -> Error {
    Error::StoreUsage(what.to_owned())
}
