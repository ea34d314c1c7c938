//! A real Kafka for tests: `scripts/kafka`, or the running broker that `KAFKA_BOOTSTRAP` names.

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
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::metadata::{MetadataPartition, MetadataTopic};
use tempfile::TempDir;

use super::skip::cannot_run;

/// `scripts/kafka` ends with this status when Java, Maven or the jars are missing.
const UNAVAILABLE: i32 = 69;
/// For anything that a loaded machine may take its time for.
const DEADLINE: Duration = Duration::from_secs(180);
const START_DEADLINE_S: &str = "KAFKA_START_DEADLINE_S";

/// One broker. Dropping it stops it and removes its data; when the process ends without that,
/// the script's watchdog does it.
pub(crate) struct Kafka {
    values: HashMap<String, String>,
    /// `None` for a broker that is not ours.
    dir: Option<TempDir>,
}

/// The broker of a test binary, for tests that only need topics of their own.
static SHARED: LazyLock<Option<Kafka>> = LazyLock::new(Kafka::start);

impl Kafka {
    /// A broker of its own, or `None` (said on standard error) where Kafka cannot be had.
    ///
    /// # Panics
    /// When `CI` is set and Kafka cannot be had, and when a broker that could be started failed.
    pub(crate) fn start() -> Option<Self> {
        Self::start_under(std::process::id())
    }

    /// The same with broker settings, `KEY=VALUE` each. Only a broker that is ours has them.
    pub(crate) fn start_with(settings: &[&str]) -> Option<Self> {
        Self::up(std::process::id(), settings)
    }

    /// The same, taken down when the process `parent` has ended.
    pub(crate) fn start_under(parent: u32) -> Option<Self> {
        Self::up(parent, &[])
    }

    fn up(parent: u32, settings: &[&str]) -> Option<Self> {
        let dir = TempDir::with_prefix("kafka-").expect("a temporary directory");
        let output = script()
            .args([
                "up",
                "--proxied-port",
                "auto",
                "--parent",
                &parent.to_string(),
            ])
            .arg("--dir")
            .arg(dir.path())
            .args(settings.iter().flat_map(|setting| ["--config", setting]))
            .output()
            .expect("scripts/kafka runs");
        if output.status.code() == Some(UNAVAILABLE) {
            let reason = String::from_utf8_lossy(&output.stderr);
            cannot_run(&format!("it needs a real Kafka. {reason}"));
            return None;
        }
        if !output.status.success() {
            // The message names a log in it.
            let kept = dir.keep();
            let reason = String::from_utf8_lossy(&output.stderr);
            panic!(
                "scripts/kafka up failed (its directory {} is kept): {reason}",
                kept.display()
            );
        }
        let values = parse(&output.stdout);
        let dir = (!values.contains_key("external")).then_some(dir);
        Some(Self { values, dir })
    }

    /// The broker that all tests of this binary share.
    pub(crate) fn shared() -> Option<&'static Self> {
        SHARED.as_ref()
    }

    pub(crate) fn bootstrap(&self) -> &str {
        &self.values["bootstrap"]
    }

    /// The broker's `log.dirs`; `None` when the broker is not ours and `KAFKA_LOG_DIR` is unset.
    pub(crate) fn log_dir(&self) -> Option<&Path> {
        self.values
            .get("log_dir")
            .filter(|dir| !dir.is_empty())
            .map(Path::new)
    }

    /// The process id as of now; `None` when it is stopped or not ours.
    pub(crate) fn pid(&self) -> Option<u32> {
        let id = std::fs::read_to_string(self.dir.as_ref()?.path().join("broker.pid")).ok()?;
        id.trim().parse().ok()
    }

    /// Whether it was started by this process, with the settings that were asked for.
    pub(crate) fn is_ours(&self) -> bool {
        self.dir.is_some()
    }

    /// Where a proxy is to listen, and where it is to forward to; `None` when the broker is not
    /// ours and the environment does not say.
    pub(crate) fn proxied(&self) -> Option<(SocketAddr, SocketAddr)> {
        let address = |name: &str| self.values.get(name)?.parse().ok();
        Some((address("proxied")?, address("proxied_upstream")?))
    }

    /// The environment in which scripts use this broker instead of one of their own.
    pub(crate) fn environment(&self) -> Vec<(&'static str, &str)> {
        [
            ("KAFKA_BOOTSTRAP", "bootstrap"),
            ("KAFKA_LOG_DIR", "log_dir"),
            ("KAFKA_PROXIED", "proxied"),
            ("KAFKA_PROXIED_UPSTREAM", "proxied_upstream"),
        ]
        .into_iter()
        .filter_map(|(name, key)| Some((name, self.values.get(key)?.as_str())))
        .collect()
    }

    /// Stops the broker as an operator would, its data kept, and starts it on the same ports.
    pub(crate) fn restart(&self) {
        self.stop();
        self.resume();
    }

    /// Stops the broker as an operator would. `resume` brings it back.
    pub(crate) fn stop(&self) {
        self.control(&["stop"]);
    }

    /// SIGKILL. `resume` brings it back.
    pub(crate) fn kill(&self) {
        self.control(&["kill"]);
    }

    /// Starts a stopped or killed broker on its data and its ports.
    pub(crate) fn resume(&self) {
        self.control(&["up", "--resume"]);
    }

    /// Runs one of `scripts/bin` with `--bootstrap-server` given, and returns what it printed.
    ///
    /// # Panics
    /// When the tool fails; what it said on standard error is in the message.
    pub(crate) fn tool<S: AsRef<OsStr>>(&self, name: &str, args: &[S]) -> String {
        let output = self.try_tool(name, args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} failed: {said}");
        String::from_utf8(output.stdout).expect("a tool prints UTF-8")
    }

    /// The same for a tool that may refuse: its status and all that it said.
    pub(crate) fn try_tool<S: AsRef<OsStr>>(&self, name: &str, args: &[S]) -> Output {
        let mut command = Command::new(repository().join("scripts/bin").join(name));
        command
            .args(["--bootstrap-server", self.bootstrap()])
            .args(args)
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Creates a topic and waits until every partition has a leader.
    pub(crate) fn create_topic(&self, name: &str, partitions: i32) {
        let admin: AdminClient<DefaultClientContext> =
            self.client().create().expect("an admin client");
        let topic = NewTopic::new(name, partitions, TopicReplication::Fixed(1));
        // On a thread of its own: the caller may be inside a runtime, where blocking is refused.
        let results = std::thread::scope(|scope| {
            let create = || runtime().block_on(admin.create_topics([&topic], &AdminOptions::new()));
            scope
                .spawn(create)
                .join()
                .expect("the admin call does not panic")
        });
        for result in results.expect("the broker answers") {
            result.unwrap_or_else(|(topic, code)| panic!("creating {topic}: {code}"));
        }
        let wanted = usize::try_from(partitions).expect("a count");
        wait_until(
            &format!("{name} has {partitions} partitions with leaders"),
            || self.leaders(name) == wanted,
        );
    }

    /// The end offset of every partition, in partition order: how many records went in.
    pub(crate) fn end_offsets(&self, topic: &str) -> Vec<i64> {
        let client = self.probe();
        let metadata = client
            .fetch_metadata(Some(topic), DEADLINE)
            .expect("metadata");
        let mut partitions: Vec<_> = metadata
            .topics()
            .iter()
            .flat_map(MetadataTopic::partitions)
            .map(MetadataPartition::id)
            .collect();
        partitions.sort_unstable();
        let end = |partition| {
            // Right after a start the broker does not lead yet what its metadata says.
            let deadline = Instant::now() + DEADLINE;
            loop {
                match client.fetch_watermarks(topic, partition, DEADLINE) {
                    Ok((_, end)) => return end,
                    Err(error) => assert!(Instant::now() < deadline, "{topic}: {error}"),
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        partitions.into_iter().map(end).collect()
    }

    fn leaders(&self, topic: &str) -> usize {
        let Ok(metadata) = self.probe().fetch_metadata(Some(topic), DEADLINE) else {
            return 0;
        };
        let partitions = metadata.topics().iter().flat_map(MetadataTopic::partitions);
        partitions
            .filter(|partition| partition.leader() >= 0)
            .count()
    }

    fn probe(&self) -> BaseConsumer {
        self.client().create().expect("a consumer")
    }

    fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        // Asking for a topic that does not exist must not make it.
        config
            .set("bootstrap.servers", self.bootstrap())
            .set("allow.auto.create.topics", "false");
        config
    }

    fn control(&self, args: &[&str]) {
        let dir = self
            .dir
            .as_ref()
            .expect("KAFKA_BOOTSTRAP's broker is not ours to stop or start");
        let output = script()
            .args(args)
            .arg("--dir")
            .arg(dir.path())
            .output()
            .expect("scripts/kafka runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "scripts/kafka {args:?} failed: {said}"
        );
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        if let Some(dir) = &self.dir {
            // A panic here would hide the test's own; the watchdog tries again.
            let _ = script().arg("down").arg("--dir").arg(dir.path()).output();
        }
    }
}

/// Waits until `condition` holds.
///
/// # Panics
/// When it does not within 180 s; the message is `what`.
pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {DEADLINE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn script() -> Command {
    let mut command = Command::new(repository().join("scripts/kafka"));
    command.stdin(Stdio::null());
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

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}
