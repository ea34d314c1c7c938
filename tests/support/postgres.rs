//! A real PostgreSQL for tests: `scripts/postgres`.

#![allow(
    dead_code,
    reason = "each test binary compiles this file and uses a part of it"
)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test's helper fails by panicking"
)]

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};

use super::skip::cannot_run;

/// `scripts/postgres` ends with this status when PostgreSQL is missing.
pub(crate) const UNAVAILABLE: i32 = 69;
const DEADLINE: Duration = Duration::from_secs(30);
const START_DEADLINE_S: &str = "POSTGRES_START_DEADLINE_S";

/// One server. Dropping it stops it and removes its data; when the process ends without that, the
/// script's watchdog does it.
pub(crate) struct Postgres {
    config: Config,
    dir: TempDir,
    databases: AtomicU64,
}

impl Postgres {
    /// A server of its own, or `None` (said on standard error) where PostgreSQL cannot be had.
    ///
    /// # Panics
    /// When `CI` is set and PostgreSQL cannot be had, and when a server that could be started
    /// failed.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same with server settings, `KEY=VALUE` each.
    pub(crate) fn start_with(settings: &[&str]) -> Option<Self> {
        Self::up(std::process::id(), &[], settings)
    }

    /// The same, taken down when the process `parent` has ended.
    pub(crate) fn start_under(parent: u32) -> Option<Self> {
        Self::up(parent, &[], &[])
    }

    /// The same, started by `wrapper`: a command that ends in running its arguments.
    pub(crate) fn start_in(wrapper: &[&str]) -> Option<Self> {
        Self::up(std::process::id(), wrapper, &[])
    }

    fn up(parent: u32, wrapper: &[&str], settings: &[&str]) -> Option<Self> {
        let dir = TempDir::with_prefix("postgres-").expect("a temporary directory");
        let output = script(wrapper)
            .args(["up", "--parent", &parent.to_string()])
            .arg("--dir")
            .arg(dir.path())
            .args(settings.iter().flat_map(|setting| ["--config", setting]))
            .output()
            .expect("scripts/postgres runs");
        let reason = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(UNAVAILABLE) {
            cannot_run(&format!("it needs a real PostgreSQL. {reason}"));
            return None;
        }
        if !output.status.success() {
            // The message names a log in it.
            let kept = dir.keep();
            panic!(
                "scripts/postgres up failed (its directory {} is kept): {reason}",
                kept.display()
            );
        }
        let config = parse(&output.stdout)["url"].parse();
        Some(Self {
            config: config.expect("the script prints a URL"),
            dir,
            databases: AtomicU64::new(0),
        })
    }

    /// How its first user, who may do everything, reaches the database that is always there.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// How it reaches another database. The text is a URL for processes of their own.
    pub(crate) fn url(&self, database: &str) -> String {
        url(&self.config, database)
    }

    /// An empty database of a test's own, and how to reach it.
    pub(crate) async fn database(&self) -> Config {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{number}");
        let client = connect(&self.config).await;
        let create = format!("CREATE DATABASE {name}");
        client.batch_execute(&create).await.expect("a new database");
        let mut config = self.config.clone();
        config.dbname(&name);
        config
    }

    /// The server's directory.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// What the server has logged so far.
    pub(crate) fn log(&self) -> String {
        let log = std::fs::read(self.dir.path().join("postgres.log")).expect("the server's log");
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The process id as of now; `None` when it is stopped.
    pub(crate) fn pid(&self) -> Option<u32> {
        let id = std::fs::read_to_string(self.dir.path().join("postgres.pid")).ok()?;
        id.trim().parse().ok()
    }

    /// Stops the server as an operator would. `resume` brings it back.
    pub(crate) fn stop(&self) {
        self.control(&["stop"]);
    }

    /// SIGKILL to all of its processes. `resume` brings it back.
    pub(crate) fn kill(&self) {
        self.control(&["kill"]);
    }

    /// Starts a stopped or killed server on its data and its port.
    pub(crate) fn resume(&self) {
        self.control(&["up", "--resume"]);
    }

    fn control(&self, args: &[&str]) {
        let output = script::<&str>(&[])
            .args(args)
            .arg("--dir")
            .arg(self.dir.path())
            .output()
            .expect("scripts/postgres runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "scripts/postgres {args:?} failed: {said}"
        );
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut down = script::<&str>(&[]);
        down.arg("down").arg("--dir").arg(self.dir.path());
        if std::thread::panicking() {
            // The log may say why.
            down.arg("--keep");
            self.dir.disable_cleanup(true);
            eprintln!(
                "the server's directory {} is kept",
                self.dir.path().display()
            );
        }
        // A panic here would hide the test's own; the watchdog tries again.
        let _ = down.output();
    }
}

/// Connects. The connection's own task ends with it.
///
/// # Panics
/// When it cannot, after a while: a server that has just been killed refuses at first.
pub(crate) async fn connect(config: &Config) -> Client {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match config.connect(NoTls).await {
            Ok((client, connection)) => {
                // How it ended shows in what the client is answered.
                tokio::spawn(connection);
                return client;
            }
            Err(error) => assert!(Instant::now() < deadline, "connecting: {error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A configuration as the URL that a process of its own is given.
pub(crate) fn url(config: &Config, database: &str) -> String {
    let user = config.get_user().expect("a user");
    let password = config.get_password().expect("a password");
    let password = std::str::from_utf8(password).expect("a password of digits");
    let [Host::Tcp(host)] = config.get_hosts() else {
        panic!("one host: {config:?}");
    };
    let port = config.get_ports()[0];
    format!("postgresql://{user}:{password}@{host}:{port}/{database}")
}

fn script<S: AsRef<OsStr>>(wrapper: &[S]) -> Command {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/postgres");
    let mut words = wrapper.iter().map(AsRef::as_ref).chain([path.as_os_str()]);
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).stdin(Stdio::null());
    // A loaded machine takes its time, and a start that fails says so by itself.
    if std::env::var_os(START_DEADLINE_S).is_none() {
        command.env(START_DEADLINE_S, "180");
    }
    command
}

fn parse(lines: &[u8]) -> HashMap<String, String> {
    let text = String::from_utf8_lossy(lines);
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
