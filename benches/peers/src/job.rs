//! What a contender's process is told, and how far it is.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Outcome;
use crate::race::tell_begun;

const TASK: &str = "BENCH_TASK";
const BOOTSTRAP: &str = "BENCH_BOOTSTRAP";
const TOPIC: &str = "BENCH_TOPIC";
const GROUP: &str = "BENCH_GROUP";
const TO: &str = "BENCH_TO";
const DIRECTORY: &str = "BENCH_DIRECTORY";
const WARM_UP: &str = "BENCH_WARM_UP";
const HANDLED: &str = "BENCH_HANDLED";

/// A group's member that dies is noticed after this: the least that brokers allow.
pub const SESSION_TIMEOUT_MS: &str = "6000";

/// One run of one contender. It travels in the environment of its process.
#[derive(Clone)]
pub struct Job {
    /// Which contender.
    pub task: String,
    pub bootstrap: String,
    pub topic: String,
    pub group: String,
    /// The topic that records are forwarded to; empty for none.
    pub to: String,
    /// Where its store is, or is made.
    pub directory: PathBuf,
    /// Records that it handles before the clock starts.
    pub warm_up: u64,
    /// The file that gets a byte at the place of each record's number when it is handled.
    pub handled: Option<PathBuf>,
}

impl Job {
    /// What this process was told; nothing where it is no contender's.
    ///
    /// # Errors
    ///
    /// A part is missing.
    pub fn told() -> Outcome<Option<Self>> {
        let Ok(task) = std::env::var(TASK) else {
            return Ok(None);
        };
        let text = |name: &str| std::env::var(name).map_err(|error| format!("{name}: {error}"));
        Ok(Some(Self {
            task,
            bootstrap: text(BOOTSTRAP)?,
            topic: text(TOPIC)?,
            group: text(GROUP)?,
            to: text(TO)?,
            directory: text(DIRECTORY)?.into(),
            warm_up: text(WARM_UP)?.parse()?,
            handled: std::env::var_os(HANDLED).map(PathBuf::from),
        }))
    }

    /// This program again, as the job's contender.
    ///
    /// # Errors
    ///
    /// The operating system does not say where this program is.
    pub fn command(&self) -> Outcome<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        self.tell(&mut command);
        Ok(command)
    }

    /// Puts the job into a process's environment.
    pub fn tell(&self, command: &mut Command) {
        command
            .env(TASK, &self.task)
            .env(BOOTSTRAP, &self.bootstrap)
            .env(TOPIC, &self.topic)
            .env(GROUP, &self.group)
            .env(TO, &self.to)
            .env(DIRECTORY, &self.directory)
            .env(WARM_UP, self.warm_up.to_string());
        if let Some(path) = &self.handled {
            command.env(HANDLED, path);
        }
    }
}

/// What a contender's handler does: counts, and leaves a trace where one is asked for.
pub struct Progress {
    handled: AtomicU64,
    warm_up: u64,
    trace: Option<File>,
}

impl Progress {
    /// # Errors
    ///
    /// The trace cannot be opened.
    pub fn of(job: &Job) -> Outcome<Self> {
        let trace = job.handled.as_deref().map(open).transpose()?;
        Ok(Self {
            handled: AtomicU64::new(0),
            warm_up: job.warm_up,
            trace,
        })
    }

    /// A record is handled. Its trace is the operating system's when this returns, and outlives
    /// the process.
    ///
    /// # Errors
    ///
    /// The trace cannot be written.
    pub fn handle(&self, number: u64) -> std::io::Result<()> {
        if let Some(trace) = &self.trace {
            trace.write_all_at(b"+", number)?;
        }
        if self.handled.fetch_add(1, Ordering::Relaxed) + 1 == self.warm_up {
            tell_begun();
        }
        Ok(())
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(false)
        .write(true)
        .truncate(true)
        .open(path)
}
