//! The process under test.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::broker::{self, short_session_ms};
use crate::support::kafka::Kafka;

const DEDUP: &str = env!("CARGO_BIN_EXE_dedup");

/// Two topics, a group of the output's name, and directories for stores and logs.
pub(crate) struct Bench<'a> {
    pub(crate) kafka: &'a Kafka,
    pub(crate) from: String,
    pub(crate) to: String,
    dir: TempDir,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(kafka: &'a Kafka, from: String, to: String) -> Self {
        Self {
            kafka,
            from,
            to,
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// An instance with a store of its own, not started yet. Its session is short, so that one that
    /// was killed does not keep its partitions.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(DEDUP);
        let session = format!("session.timeout.ms={}", short_session_ms(self.kafka));
        command
            .args(["topic", "--from", &self.from, "--to", &self.to])
            .args(["--key", "header:event-id", "--group", &self.to])
            .args(["--brokers", self.kafka.bootstrap(), "--store"])
            .arg(self.path(name))
            .args(["-X", &session, "-X", "heartbeat.interval.ms=200"])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    pub(crate) fn start(&self, name: &'static str) -> Service {
        self.start_with(name, &[])
    }

    pub(crate) fn start_with(&self, name: &'static str, args: &[&str]) -> Service {
        let log = self.path(&format!("{name}.log"));
        let file = File::options().append(true).create(true).open(&log);
        let file = file.unwrap();
        let said = file.metadata().unwrap().len();
        let child = self.command(name).args(args).stderr(file).spawn().unwrap();
        Service { child, log, said }
    }

    /// Waits until the group has committed all that is in the topic. A transaction's marker may lie
    /// behind the last record.
    pub(crate) fn wait_caught_up(&self, service: &mut Service) {
        broker::wait_for("the end of the topic that is read", || {
            service.assert_running();
            let ends = self.kafka.end_offsets(&self.from);
            let at = broker::committed(self.kafka, &self.to, &self.from);
            let reached = |(at, end): (&Option<i64>, &i64)| at.unwrap_or(0) >= *end;
            at.iter().zip(&ends).all(reached)
        });
    }
}

pub(crate) struct Service {
    child: Child,
    log: PathBuf,
    /// How long the log was at its start.
    said: u64,
}

impl Service {
    /// All that it has said since it was started.
    pub(crate) fn said(&self) -> String {
        let log = fs::read(&self.log).unwrap();
        let from = usize::try_from(self.said).unwrap();
        String::from_utf8_lossy(&log[from..]).into_owned()
    }

    pub(crate) fn wait_said(&mut self, words: &str) {
        broker::wait_for(&format!("the words {words:?}"), || {
            let said = self.said();
            let ended = self.child.try_wait().unwrap();
            assert!(
                said.contains(words) || ended.is_none(),
                "it ended ({ended:?}) without {words:?}: {said}"
            );
            said.contains(words)
        });
    }

    pub(crate) fn assert_running(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "it ended ({ended:?}): {}", self.said());
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.assert_running();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill")
            .args(["-s", name, &id])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Waits for the end that comes by itself.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let mut status = None;
        broker::wait_for("the end of the service", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Stops it as a supervisor does, and gives what it said.
    pub(crate) fn stop(mut self) -> String {
        self.assert_running();
        self.signal("TERM");
        let status = self.end();
        let said = self.said();
        assert_eq!(status.code(), Some(0), "{said}");
        said
    }

    /// Where it listens.
    pub(crate) fn address(&mut self) -> SocketAddr {
        self.wait_said("address=");
        let said = self.said();
        let (_, rest) = said.split_once("address=").unwrap();
        rest.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("it has said:\n{}", self.said());
        }
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends bytes and gives the answer, as far as one comes.
pub(crate) fn ask(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    // It may have answered and closed before it was sent everything.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status line and the body of a page.
pub(crate) fn get(address: SocketAddr, path: &str) -> (String, String) {
    let answer = ask(
        address,
        format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes(),
    );
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.lines().next().unwrap();
    (status.to_owned(), body.to_owned())
}

/// Runs it to its end with arguments of its own; gives its code and what it said.
pub(crate) fn refusal(mut command: Command, dir: &Path) -> (Option<i32>, String) {
    let log = dir.join("refused.log");
    let child = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
    let mut service = Service {
        child,
        log,
        said: 0,
    };
    let code = service.end().code();
    (code, service.said())
}
