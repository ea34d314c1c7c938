//! How a group is divided, and how soon it takes a member for dead.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::kafka::Kafka;

pub(crate) type Config = BTreeMap<String, String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Range,
    CooperativeSticky,
    /// Range, with a `group.instance.id`: a member that comes back takes its old place at once.
    Static,
    /// `group.protocol=consumer`.
    Consumer,
}

impl Protocol {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::CooperativeSticky => "cooperative",
            Self::Static => "static",
            Self::Consumer => "consumer",
        }
    }

    /// The settings of the member `name` in a group whose sessions last so long. For the
    /// broker's own protocol they are the group's: see [`Protocol::prepare`].
    pub(crate) fn config(self, name: &str, session: Duration) -> Config {
        let mut config = Config::new();
        let mut set = |key: &str, value: &str| config.insert(key.to_owned(), value.to_owned());
        if self == Self::Consumer {
            set("group.protocol", "consumer");
            return config;
        }
        set("session.timeout.ms", &session.as_millis().to_string());
        set("heartbeat.interval.ms", "200");
        match self {
            Self::CooperativeSticky => set("partition.assignment.strategy", "cooperative-sticky"),
            _ => set("partition.assignment.strategy", "range"),
        };
        if self == Self::Static {
            set("group.instance.id", name);
        }
        config
    }

    /// Tells the broker what it decides in place of the members.
    pub(crate) fn prepare(self, kafka: &Kafka, group: &str, session: Duration) {
        if self == Self::Consumer {
            let setting = format!("consumer.session.timeout.ms={}", session.as_millis());
            let entity = ["--alter", "--entity-type", "groups", "--entity-name", group];
            let args: Vec<_> = entity
                .into_iter()
                .chain(["--add-config", &setting])
                .collect();
            kafka.tool("kafka-configs.sh", &args);
        }
    }
}
