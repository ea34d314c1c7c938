//! On or off, the settings, and where they are kept.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use idempotent_consumer::testkit::{DELAY_MAX, DelayLarge, Faults};
use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

pub(crate) const DELAY_MS_MAX: u64 = DELAY_MAX.as_secs() * 1_000;

/// Where the state is kept when neither a flag nor the environment says. `/run` first: a root
/// shell has an `XDG_RUNTIME_DIR` and a serve started at boot has none, yet they must meet.
pub(crate) fn default_path() -> PathBuf {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = named("KAFKA_LAB_SLOW_STATE") {
        return path.into();
    }
    let directory = if access("/run", Access::WRITE_OK).is_ok() {
        PathBuf::from("/run")
    } else {
        named("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from)
    };
    directory.join("kafka-lab-slow.json")
}

/// Settings that were asked for; what was not is left as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) threshold_bytes: Option<u32>,
    pub(crate) delay_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    pub(crate) on: bool,
    pub(crate) threshold_bytes: u32,
    pub(crate) delay_ms: u64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            on: false,
            threshold_bytes: 4_096,
            delay_ms: 600,
        }
    }
}

impl State {
    pub(crate) fn with(self, settings: Settings) -> Self {
        Self {
            threshold_bytes: settings.threshold_bytes.unwrap_or(self.threshold_bytes),
            delay_ms: settings.delay_ms.unwrap_or(self.delay_ms),
            ..self
        }
    }

    pub(crate) fn faults(self) -> Faults {
        let large = DelayLarge {
            threshold_bytes: usize::try_from(self.threshold_bytes).unwrap_or(usize::MAX),
            delay: Duration::from_millis(self.delay_ms),
        };
        Faults {
            delay_large: self.on.then_some(large),
            ..Faults::default()
        }
    }

    pub(crate) fn on_or_off(self) -> &'static str {
        if self.on { "on" } else { "off" }
    }

    pub(crate) fn delay_in_words(self) -> String {
        format!(
            "{} ms for requests of more than {} bytes",
            self.delay_ms, self.threshold_bytes
        )
    }
}

/// What a running serve says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Serving {
    pub(crate) process_id: u32,
    pub(crate) listen: SocketAddr,
    pub(crate) upstream: SocketAddr,
    pub(crate) in_force: State,
}
