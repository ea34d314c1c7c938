//! What the settings mean: everything is checked here, before anything is opened or connected.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use idempotent_consumer::{
    ClientConfig, Mismatch,
    key::{MissingKey, Recipe, Scope},
};

use super::{
    error::Error,
    log::{Format, Level},
    recipe,
    settings::{Settings, Value},
};

/// Without these there is nothing to do.
const REQUIRED: [&str; 6] = ["from", "to", "key", "brokers", "group", "store"];

const COMMIT_WITHIN: Duration = Duration::from_millis(100);
const TOPIC_NAME_BYTES_MAX: usize = 249;

/// Which partition of the output a record goes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Partitioning {
    Key,
    Same,
}

/// A run, every default filled in.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) recipe: Recipe,
    pub(super) group: String,
    pub(super) store: PathBuf,
    pub(super) scope: Scope,
    pub(super) missing_key: MissingKey,
    pub(super) mismatch: Mismatch,
    pub(super) dead_letter: Option<String>,
    pub(super) partitioning: Partitioning,
    pub(super) commit_within: Duration,
    pub(super) drain_limit: Option<Duration>,
    pub(super) listen: Option<SocketAddr>,
    /// Where the brokers are, the group, and whatever the user set of librdkafka's.
    pub(super) kafka: ClientConfig,
    /// What is worth a warning, once there is somebody to tell.
    pub(super) warnings: Vec<String>,
}

/// How to say things is settled first, so that whatever else is wrong is said like that.
pub(super) fn log(settings: &Settings) -> Result<(Format, Level), Error> {
    let format = one_of(settings, "log", FORMATS, Format::Text)?;
    Ok((format, one_of(settings, "log-level", LEVELS, Level::INFO)?))
}

impl Config {
    /// Checks all of it.
    ///
    /// # Errors
    /// [`Error::Usage`] with the place of what is wrong.
    pub(super) fn new(settings: &Settings) -> Result<Self, Error> {
        let missing: Vec<_> = REQUIRED
            .iter()
            .filter(|name| !settings.ours.contains_key(*name))
            .map(|name| format!("--{name}"))
            .collect();
        if !missing.is_empty() {
            return Err(Error::Usage(format!("missing: {}", missing.join(", "))));
        }
        let (from, to) = (topic(settings, "from")?, topic(settings, "to")?);
        differ(settings, "to", &to, "--from", &from)?;
        let dead_letter = match settings.ours.get("dead-letter") {
            None => None,
            Some(_) => Some(topic(settings, "dead-letter")?),
        };
        if let Some(letters) = &dead_letter {
            differ(settings, "dead-letter", letters, "--from", &from)?;
            differ(settings, "dead-letter", letters, "--to", &to)?;
        }
        let key = required(settings, "key")?;
        Ok(Self {
            from,
            to,
            recipe: recipe::parse(key.text()?).map_err(|what| key.wrong(what))?,
            group: required(settings, "group")?.text()?.to_owned(),
            store: PathBuf::from(&required(settings, "store")?.text),
            scope: one_of(settings, "scope", SCOPES, Scope::Topic)?,
            missing_key: one_of(settings, "missing-key", MISSING, MissingKey::Reject)?,
            mismatch: one_of(settings, "mismatch", MISMATCHES, Mismatch::DeadLetter)?,
            dead_letter,
            partitioning: one_of(settings, "partition", PARTITIONINGS, Partitioning::Key)?,
            commit_within: number(settings, "commit-within-ms", 2, 60_000)?
                .map_or(COMMIT_WITHIN, Duration::from_millis),
            drain_limit: number(settings, "drain-seconds", 1, 3_600)?.map(Duration::from_secs),
            listen: settings.ours.get("listen").map(listen).transpose()?,
            kafka: kafka(settings)?,
            warnings: warnings(settings),
        })
    }
}

type Words<T> = &'static [(&'static str, T)];

const FORMATS: Words<Format> = &[("text", Format::Text), ("json", Format::Json)];
const LEVELS: Words<Level> = &[
    ("error", Level::ERROR),
    ("warn", Level::WARN),
    ("info", Level::INFO),
    ("debug", Level::DEBUG),
];
const SCOPES: Words<Scope> = &[("topic", Scope::Topic), ("partition", Scope::Partition)];
const MISSING: Words<MissingKey> = &[
    ("reject", MissingKey::Reject),
    ("pass", MissingKey::PassThrough),
];
const MISMATCHES: Words<Mismatch> = &[
    ("reject", Mismatch::DeadLetter),
    ("drop", Mismatch::TreatAsDuplicate),
];
const PARTITIONINGS: Words<Partitioning> =
    &[("key", Partitioning::Key), ("same", Partitioning::Same)];

fn one_of<T: Copy>(
    settings: &Settings,
    name: &str,
    words: Words<T>,
    default: T,
) -> Result<T, Error> {
    let Some(value) = settings.ours.get(name) else {
        return Ok(default);
    };
    let text = value.text()?;
    if let Some((_, meant)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*meant);
    }
    let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    Err(value.wrong(format!("'{text}' is none of {}", words.join(", "))))
}

fn required<'a>(settings: &'a Settings, name: &str) -> Result<&'a Value, Error> {
    let missing = || Error::Usage(format!("missing: --{name}"));
    settings.ours.get(name).ok_or_else(missing)
}

/// A topic's name, by Kafka's own rule: a pattern would read more than was meant.
fn topic(settings: &Settings, name: &str) -> Result<String, Error> {
    let value = required(settings, name)?;
    let text = value.text()?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let good = (1..=TOPIC_NAME_BYTES_MAX).contains(&text.len())
        && text.bytes().all(allowed)
        && ![".", ".."].contains(&text);
    if !good {
        return Err(value.wrong(format!(
            "'{text}' is no topic's name: 1 to {TOPIC_NAME_BYTES_MAX} of the characters a-z, A-Z, \
             0-9, '.', '_' and '-'"
        )));
    }
    Ok(text.to_owned())
}

fn differ(
    settings: &Settings,
    name: &str,
    topic: &str,
    flag: &str,
    other: &str,
) -> Result<(), Error> {
    if topic == other {
        return Err(required(settings, name)?.wrong(format!(
            "'{topic}' is {flag} already: what is written there would be mixed with it, or come \
             back for ever; name another topic"
        )));
    }
    Ok(())
}

fn number(settings: &Settings, name: &str, min: u64, max: u64) -> Result<Option<u64>, Error> {
    let Some(value) = settings.ours.get(name) else {
        return Ok(None);
    };
    let text = value.text()?;
    match text.parse() {
        Ok(number) if (min..=max).contains(&number) => Ok(Some(number)),
        _ => Err(value.wrong(format!(
            "it takes a whole number from {min} to {max}, not '{text}'"
        ))),
    }
}

/// A port is one of this machine alone: whatever else must be written out.
fn listen(value: &Value) -> Result<SocketAddr, Error> {
    let text = value.text()?;
    let port = text
        .parse()
        .map(|port: u16| (Ipv4Addr::LOCALHOST, port).into());
    port.or_else(|_| text.parse()).map_err(|_| {
        value.wrong(format!(
            "it takes a port, or an address and a port as 127.0.0.1:9464, not '{text}'"
        ))
    })
}

fn kafka(settings: &Settings) -> Result<ClientConfig, Error> {
    let mut config = ClientConfig::new();
    for (name, value) in settings.kafka.values() {
        config.set(name, value.text()?);
    }
    config.set("bootstrap.servers", required(settings, "brokers")?.text()?);
    config.set("group.id", required(settings, "group")?.text()?);
    Ok(config)
}

fn warnings(settings: &Settings) -> Vec<String> {
    let stray = settings.stray.iter();
    let mut warnings: Vec<_> = stray
        .map(|variable| {
            format!(
                "{variable} in the environment is no setting; where Kubernetes sets it, for a \
                 Service of such a name, enableServiceLinks: false in the pod keeps it away"
            )
        })
        .collect();
    if let Some(path) = &settings.secret_in {
        use std::os::unix::fs::MetadataExt as _;
        let open = std::fs::metadata(path).is_ok_and(|file| file.mode() & 0o004 != 0);
        if open {
            warnings.push(format!(
                "{} holds a secret, and every user of this machine can read it: chmod o-r",
                path.display()
            ));
        }
    }
    warnings
}
