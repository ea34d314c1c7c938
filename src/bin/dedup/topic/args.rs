//! What follows `dedup topic`: what was typed, and where else settings come from.

use std::ffi::OsString;

use idempotent_consumer::audit::is_secret;
use lexopt::Arg::{Long, Short};

use super::{names::is_name, settings::NAMES};
use crate::error::Error;

pub(crate) const HELP: &str = "\
Usage: dedup topic --from IN --to OUT --key RECIPE --brokers LIST --group NAME
                   --store DIR [OPTIONS]

Copies each record of the topic IN to the topic OUT, but for those whose key has
come before. Key, value, headers and timestamp are kept, and the order of the
records of a partition. A record is written in one Kafka transaction with the
offset of its original, so that readers with isolation.level=read_committed find
each once, whatever was killed in between. Runs until SIGTERM or SIGINT.

Options:
      --from TOPIC           the topic that is read; it must exist
      --to TOPIC             the topic that is written; it must exist, and is
                             another one
      --key RECIPE           what makes two records the same; one of
                             record-key        the record's key
                             value             the whole value
                             header:NAME       a header
                             json:POINTER      a place in a JSON value, as
                                               json:/order/id
                             cloudevents       source and id of a CloudEvent
      --brokers LIST         host:port, several with commas
      --group NAME           the consumer group
      --store DIR            where the keys are kept, a directory of this group
                             alone; created when missing, though not the
                             directory that it is in
      --scope SCOPE          how far a key reaches: topic, or partition, where
                             several instances share the work and copies come
                             in one partition  [default: topic]
      --missing-key POLICY   a record without a key: reject, or pass, which
                             writes it unprotected  [default: reject]
      --mismatch POLICY      a known key with another value: reject, or drop
                             [default: reject]
      --dead-letter TOPIC    where rejected records go; without it they stop
                             the program
      --partition WHERE      key: by the record's key, as the Java client does;
                             same: the partition that it came from
                             [default: key]
      --commit-within-ms N   how long after its record is read a copy is
                             readable, at the latest; 2 to 60000
                             [default: 100]
      --drain-seconds N      how long work in hand may take at the end; 1 to
                             3600  [default: half of session.timeout.ms]
      --listen ADDRESS       serve /healthz, /readyz and /metrics there: a port,
                             which is one of 127.0.0.1, or an address and a port
                             [default: not at all]
      --log FORMAT           text or json, a line an event, on standard error
                             [default: text]
      --log-level LEVEL      error, warn, info or debug  [default: info]
      --config FILE          read settings from a file
  -X NAME=VALUE              any setting of librdkafka; see below for secrets
  -h, --help                 print this

Settings come from three places; flags win over the environment, the environment
over the file:
  flags        --from orders            -X client.id=x
  environment  DEDUP_TOPIC_FROM=orders  DEDUP_TOPIC_KAFKA_CLIENT_ID=x
  file         from=orders              kafka.client.id=x
In the environment a name is written in capitals, with _ for - and for a dot,
and with __ for _. An empty variable means unset; DEDUP_TOPIC_CONFIG names the
file.
In the file a line is a setting, empty, or a comment behind #.

A command line can be read by every user of a machine: passwords and keys are
taken from the file or the environment alone.

Exit codes:
  0  it was stopped, and what was in hand is written
  1  something failed; nothing has moved past a record that is not written, and
     the next start goes on there
  2  starting again changes nothing: the call or a setting is wrong, another
     process works with a copy of the store or the same group.instance.id, or
     the store or the topic is not the one that it was
";

/// What the user wants.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Help,
    Run(Typed),
}

/// What was typed.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Typed {
    /// By their names in [`NAMES`], each once.
    pub(super) settings: Vec<(&'static str, OsString)>,
    /// What stands behind `-X`, each name once.
    pub(super) kafka: Vec<(String, String)>,
    pub(super) config: Option<OsString>,
}

/// Reads what is left behind the word `topic`.
///
/// # Errors
/// [`Error::TopicUsage`] names the argument that is wrong.
pub(crate) fn parse(mut parser: lexopt::Parser) -> Result<Command, Error> {
    let mut typed = Typed::default();
    while let Some(arg) = parser.next().map_err(|error| usage(&error))? {
        match arg {
            Short('h') | Long("help") => return Ok(Command::Help),
            Short('X') => {
                let pair = parser.value().map_err(|error| usage(&error))?;
                typed.kafka(pair)?;
            }
            Long("config") => {
                let path = parser.value().map_err(|error| usage(&error))?;
                once("config", typed.config.replace(path).is_some())?;
            }
            Long(flag) => {
                let Some(&name) = NAMES.iter().find(|name| **name == flag) else {
                    return Err(usage(&Long(flag).unexpected()));
                };
                let value = parser.value().map_err(|error| usage(&error))?;
                if value.is_empty() {
                    return Err(wrong(&format!("--{name} is empty")));
                }
                once(name, typed.settings.iter().any(|(other, _)| *other == name))?;
                typed.settings.push((name, value));
            }
            other => return Err(usage(&other.unexpected())),
        }
    }
    Ok(Command::Run(typed))
}

impl Typed {
    fn kafka(&mut self, pair: OsString) -> Result<(), Error> {
        let pair = pair
            .into_string()
            .map_err(|_| wrong("what stands behind -X is not UTF-8"))?;
        // Not shown: what is not understood may hold a password.
        let Some((name, value)) = pair.split_once('=').filter(|(name, _)| is_name(name)) else {
            return Err(wrong(
                "-X takes NAME=VALUE, with the name of a setting as librdkafka spells it",
            ));
        };
        if is_secret(name) {
            return Err(wrong(&format!(
                "-X {name}: every user of this machine can read a command line; put it into the \
                 file as kafka.{name}=... or into the environment"
            )));
        }
        if self.kafka.iter().any(|(other, _)| other == name) {
            return Err(wrong(&format!("-X {name} is given twice")));
        }
        self.kafka.push((name.to_owned(), value.to_owned()));
        Ok(())
    }
}

/// The last of two is what other programs take; here it could copy to a topic that was not meant.
fn once(flag: &str, given: bool) -> Result<(), Error> {
    if given {
        return Err(wrong(&format!("--{flag} is given twice")));
    }
    Ok(())
}

fn usage(error: &lexopt::Error) -> Error {
    wrong(&error.to_string())
}

fn wrong(what: &str) -> Error {
    Error::TopicUsage(what.to_owned())
}
