//! A member in a process of its own: this test binary, run again.

use std::env;
use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use idempotent_consumer::{ClientConfig, Delivery};
use tokio_util::sync::CancellationToken;

use crate::broker::short_session_ms;
use crate::member::{self, builder, sled};
use crate::support::kafka::Kafka;

const DIRECTORY: &str = "IDEMPOTENT_CONSUMER_TEST_DIRECTORY";
const BOOTSTRAP: &str = "IDEMPOTENT_CONSUMER_TEST_BOOTSTRAP";
const TOPIC: &str = "IDEMPOTENT_CONSUMER_TEST_TOPIC";
const SESSION_MS: &str = "IDEMPOTENT_CONSUMER_TEST_SESSION_MS";
/// So slow is a handler, that a kill finds it at work.
const HANDLING: Duration = Duration::from_micros(100);

/// What the child does. Does nothing in a normal run of the tests.
#[test]
fn role() {
    let Some(directory) = env::var_os(DIRECTORY).map(PathBuf::from) else {
        return;
    };
    let of = |name| env::var(name).unwrap();
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", of(BOOTSTRAP))
        .set("group.id", of(TOPIC))
        .set("session.timeout.ms", of(SESSION_MS))
        .set("heartbeat.interval.ms", "200")
        // Many small answers: what is in flight at a kill differs each time.
        .set("fetch.message.max.bytes", "2000");
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    std::thread::spawn(move || {
        // Until the parent lets go.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stopped.cancel();
    });
    member::log();
    let store = sled(&directory.join("seen"));
    let consumer = builder(config, &of(TOPIC)).build(store).unwrap();
    let mut effects = OpenOptions::new();
    let effects = effects
        .create(true)
        .append(true)
        .open(directory.join("effects"))
        .unwrap();
    let handler = async move |record: &Delivery<'_>, _: &mut _| {
        let key = String::from_utf8_lossy(record.key().unwrap_or_default());
        // One write: a kill leaves the line whole or out.
        let line = format!("{key} {} {}\n", record.partition(), record.in_doubt());
        (&effects).write_all(line.as_bytes())?;
        std::thread::sleep(HANDLING);
        Ok(())
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(consumer.run(handler, stop)).unwrap();
}

/// A line of the history that the children share.
pub(crate) struct Line {
    pub(crate) key: String,
    pub(crate) in_doubt: bool,
}

pub(crate) fn history(directory: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(directory.join("effects")).unwrap_or_default();
    text.lines()
        .map(|line| {
            let (key, rest) = line.split_once(' ').unwrap();
            Line {
                key: key.to_owned(),
                in_doubt: rest.ends_with("true"),
            }
        })
        .collect()
}

pub(crate) struct Process(Child);

pub(crate) fn start(kafka: &Kafka, topic: &str, directory: &Path) -> Process {
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "child::role", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(BOOTSTRAP, kafka.bootstrap())
        .env(TOPIC, topic)
        .env(SESSION_MS, short_session_ms(kafka))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    Process(child)
}

impl Process {
    pub(crate) fn assert_running(&mut self) {
        let ended = self.0.try_wait().unwrap();
        assert!(ended.is_none(), "the child ended: {ended:?}");
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill")
            .args(["-s", name, &id])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Stops it in order.
    pub(crate) fn stop(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
