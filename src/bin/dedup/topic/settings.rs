//! Settings by name, from three places, each with where it stands.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
    mem::discriminant,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use idempotent_consumer::audit::is_secret;

use super::{args::Typed, error::Error, file, names};

/// The settings of our own. A flag is `--` and the name.
pub(super) const NAMES: [&str; 16] = [
    "from",
    "to",
    "key",
    "brokers",
    "group",
    "store",
    "scope",
    "missing-key",
    "mismatch",
    "dead-letter",
    "partition",
    "commit-within-ms",
    "drain-seconds",
    "listen",
    "log",
    "log-level",
];

/// How a variable begins, and one that is a setting of librdkafka.
const VARIABLE: &str = "DEDUP_TOPIC_";
const KAFKA_VARIABLE: &str = "KAFKA_";
/// The file's.
const CONFIG_VARIABLE: &str = "CONFIG";
/// How a setting of librdkafka begins in the file.
const KAFKA_LINE: &str = "kafka.";

/// What is said otherwise: two places for one thing could differ.
const OURS: [(&str, &str); 3] = [
    ("bootstrap.servers", "brokers"),
    ("metadata.broker.list", "brokers"),
    ("group.id", "group"),
];

/// Where a setting stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Origin {
    Flag(String),
    Variable(String),
    Line {
        path: PathBuf,
        number: usize,
        name: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(text) | Self::Variable(text) => f.write_str(text),
            Self::Line { path, number, name } => {
                write!(f, "{}, line {number}, {name}", path.display())
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value {
    pub(super) text: OsString,
    pub(super) origin: Origin,
}

impl Value {
    pub(super) fn text(&self) -> Result<&str, Error> {
        self.text
            .to_str()
            .ok_or_else(|| self.wrong("it is not UTF-8"))
    }

    /// An error that says where.
    pub(super) fn wrong(&self, what: impl fmt::Display) -> Error {
        Error::Usage(format!("{}: {what}", self.origin))
    }
}

/// Everything that was set, by flag, variable or line; of each name what wins.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) ours: BTreeMap<&'static str, Value>,
    /// Those of librdkafka under their first names, each with the name that was used.
    pub(super) kafka: BTreeMap<String, (String, Value)>,
    /// Variables that look like ours and are none, to be warned of.
    pub(super) stray: Vec<String>,
    /// The file, where it holds a secret.
    pub(super) secret_in: Option<PathBuf>,
}

impl Settings {
    /// Gathers them. Nothing but the file is opened.
    ///
    /// # Errors
    /// Where the file cannot be read, and for a line, a variable or a flag that is no setting.
    pub(super) fn gather(
        typed: Typed,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Error> {
        let mut settings = Self::default();
        let mut file = None;
        // The strongest first: who comes later changes nothing.
        for (name, text) in typed.settings {
            let origin = Origin::Flag(format!("--{name}"));
            settings.ours.insert(name, Value { text, origin });
        }
        for (name, value) in typed.kafka {
            let origin = Origin::Flag(format!("-X {name}"));
            settings.kafka(&name, value.into(), origin)?;
        }
        for (variable, text) in environment {
            let Some(name) = variable.to_str().and_then(|it| it.strip_prefix(VARIABLE)) else {
                continue;
            };
            // What a script leaves behind that meant to unset it.
            if text.is_empty() {
                continue;
            }
            if name == CONFIG_VARIABLE {
                file = Some(text);
            } else {
                settings.variable(name, text)?;
            }
        }
        if let Some(path) = typed.config.or(file).map(PathBuf::from) {
            settings.file(&path)?;
        }
        Ok(settings)
    }

    fn variable(&mut self, name: &str, text: OsString) -> Result<(), Error> {
        let variable = format!("{VARIABLE}{name}");
        if let Some(kafka) = name.strip_prefix(KAFKA_VARIABLE) {
            if names::is_of_a_service(kafka) {
                self.stray.push(variable);
                return Ok(());
            }
            return self.kafka(&dotted(kafka), text, Origin::Variable(variable));
        }
        let spelt = name.to_ascii_lowercase().replace('_', "-");
        match NAMES.iter().find(|known| **known == spelt) {
            Some(known) => {
                let origin = Origin::Variable(variable);
                self.ours.entry(known).or_insert(Value { text, origin });
            }
            // Only a warning: a cluster's own variables may begin like this.
            None => self.stray.push(variable),
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<(), Error> {
        for line in file::read(path)? {
            let origin = Origin::Line {
                path: path.to_path_buf(),
                number: line.number,
                name: line.name.clone(),
            };
            let text = OsStr::from_bytes(&line.value).to_os_string();
            if let Some(kafka) = line.name.strip_prefix(KAFKA_LINE) {
                if is_secret(kafka) {
                    self.secret_in = Some(path.to_path_buf());
                }
                self.kafka(kafka, text, origin)?;
                continue;
            }
            let value = Value { text, origin };
            let Some(name) = NAMES.iter().find(|name| **name == line.name) else {
                return Err(value.wrong("there is no such setting"));
            };
            if value.text.is_empty() {
                return Err(value.wrong("it is empty"));
            }
            self.ours.entry(name).or_insert(value);
        }
        Ok(())
    }

    fn kafka(&mut self, name: &str, text: OsString, origin: Origin) -> Result<(), Error> {
        let value = Value { text, origin };
        if let Some((_, ours)) = OURS.iter().find(|(theirs, _)| *theirs == name) {
            return Err(value.wrong(format!("say it with {ours} (--{ours})")));
        }
        let known = self
            .kafka
            .entry(names::first(name).to_owned())
            .or_insert_with(|| (name.to_owned(), value.clone()));
        // Of two in one place neither is stronger.
        let beside = discriminant(&known.1.origin) == discriminant(&value.origin);
        if beside && known.0 != name {
            return Err(value.wrong(format!("it is {} by another name; leave one out", known.0)));
        }
        Ok(())
    }
}

/// A variable's name as librdkafka spells it: `SASL_PASSWORD`, `LOG__LEVEL`.
fn dotted(variable: &str) -> String {
    let parts = variable.split("__").map(|part| part.replace('_', "."));
    let parts: Vec<_> = parts.collect();
    parts.join("_").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variables_name_is_that_of_the_setting() {
        for (variable, name) in [
            ("SASL_PASSWORD", "sasl.password"),
            ("LOG__LEVEL", "log_level"),
            ("SSL__KEY", "ssl_key"),
            ("SOCKET_KEEPALIVE_ENABLE", "socket.keepalive.enable"),
        ] {
            assert_eq!(dotted(variable), name);
        }
    }
}
