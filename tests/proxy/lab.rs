//! A state file of its own for each test, and the processes that meet in it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::{Broker, Client, DEADLINE, request_of_size};

/// Pause between looks at what a process wrote.
const POLL: Duration = Duration::from_millis(5);

/// A directory with a state file, and the commands that use it.
pub(crate) struct Lab {
    pub(crate) directory: TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.directory.path().join("slow.json")
    }

    /// What the last serve complained of.
    pub(crate) fn complaints(&self) -> PathBuf {
        self.directory.path().join("serve.log")
    }

    pub(crate) fn wait_for_complaint(&self, words: &str) {
        let begin = Instant::now();
        loop {
            let complaints = fs::read_to_string(self.complaints()).unwrap();
            if complaints.contains(words) {
                return;
            }
            assert!(begin.elapsed() < DEADLINE, "no {words:?} in: {complaints}");
            thread::sleep(POLL);
        }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kafka-lab-slow"));
        command
            .args(arguments)
            .env("KAFKA_LAB_SLOW_STATE", self.state())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut child = self
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if begin.elapsed() > DEADLINE {
                child.kill().unwrap();
                panic!("{arguments:?} did not end");
            }
            thread::sleep(POLL);
        }
        child.wait_with_output().unwrap()
    }

    /// Runs a command that must succeed and returns what it printed.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail with this status and returns its complaint.
    pub(crate) fn fails(&self, status: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    pub(crate) fn serve(&self, broker: &Broker) -> Serve {
        self.serve_with(broker, &[])
    }

    pub(crate) fn serve_with(&self, broker: &Broker, arguments: &[&str]) -> Serve {
        let upstream = broker.addr.to_string();
        let mut child = self
            .command(&["serve", "--listen", "127.0.0.1:0", "--upstream", &upstream])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(File::create(self.complaints()).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let addr = line.strip_prefix("listening on ").unwrap_or_else(|| {
            let output = child.kill().and_then(|()| child.wait());
            panic!("serve printed {line:?} and ended: {output:?}");
        });
        let addr = addr.split(',').next().unwrap().parse().unwrap();
        Serve { child, line, addr }
    }
}

/// A serve that runs; killed, by its own id, if the test ends before it.
pub(crate) struct Serve {
    pub(crate) child: Child,
    pub(crate) line: String,
    pub(crate) addr: SocketAddr,
}

impl Serve {
    pub(crate) fn signal(&mut self, name: &str) -> ExitStatus {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
        self.child.wait().unwrap()
    }

    pub(crate) fn round_trip(&self, payload_bytes: usize) -> Duration {
        let mut client = Client::at(self.addr);
        let begin = Instant::now();
        client.exchange(&request_of_size(1, payload_bytes));
        begin.elapsed()
    }

    /// A request that waits does so for an hour here, so one that returns did not wait.
    pub(crate) fn assert_passes(&self, payload_bytes: usize) {
        self.round_trip(payload_bytes);
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
