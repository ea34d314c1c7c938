//! The parent's handle on a member.

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::broker::DEADLINE;
use crate::member::{ORDERS, Orders};

/// Too much for a disk is an error for the process, not its end.
const WRAPPER: &str = "trap '' XFSZ; exec \"$@\"";
const LOG_SHOWN_BYTES: usize = 3_000;

/// How a member may end that cannot reach the broker: at its start, in a rebalance, at its end. The
/// library has waited by then, and leaves the rest to whoever runs it.
const CUT_OFF: [&str; 3] = [
    "reaching the cluster",
    "asking for the group's offsets",
    "committing the last offsets",
];

pub(crate) struct Process {
    pub(crate) name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    pub(crate) fn start(orders: &Orders, log: &Path) -> Self {
        let log_file = File::options().create(true).append(true).open(log).unwrap();
        let child = Command::new("sh")
            .args(["-c", WRAPPER, "sh"])
            .arg(env::current_exe().unwrap())
            .args(["--exact", "member::role", "--nocapture", "--test-threads=1"])
            .env(ORDERS, serde_json::to_string(orders).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log_file)
            .spawn()
            .unwrap();
        Self {
            name: orders.name.clone(),
            child,
            log: log.to_owned(),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn assert_running(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(
            ended.is_none(),
            "{} ended: {ended:?}\n{}",
            self.name,
            self.said()
        );
    }

    /// SIGKILL, and the end of it.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.id().to_string();
        run("kill", &["-s", name, &id]);
    }

    /// From now on no write of the process reaches behind the first page of a file. The end of its
    /// log would not do: sled leaves room there, and goes on for minutes.
    pub(crate) fn fill_disk(&self) {
        run(
            "prlimit",
            &["--pid", &self.id().to_string(), "--fsize=4096"],
        );
    }

    /// Waits until it has ended by itself.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            let (name, said) = (&self.name, &self.said());
            assert!(Instant::now() < end, "{name} does not end\n{said}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stops it in order.
    pub(crate) fn stop(mut self) {
        drop(self.child.stdin.take());
        let status = self.end();
        assert!(status.success(), "{}: {status}\n{}", self.name, self.said());
    }

    /// The same where the group may not be reached: then it says so, and its store is in order
    /// all the same.
    pub(crate) fn stop_cut_off(mut self) {
        drop(self.child.stdin.take());
        let status = self.end();
        assert!(
            status.success() || self.says_cut_off(),
            "{}: {status}\n{}",
            self.name,
            self.said()
        );
    }

    /// Whether it has ended because it could not reach the broker.
    pub(crate) fn was_cut_off(&mut self) -> bool {
        let ended = self.child.try_wait().unwrap().is_some();
        if ended && !self.says_cut_off() {
            self.assert_running();
        }
        ended
    }

    fn says_cut_off(&self) -> bool {
        CUT_OFF.iter().any(|words| self.said().contains(words))
    }

    /// The end of what it has logged.
    pub(crate) fn said(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let start = log.len().saturating_sub(LOG_SHOWN_BYTES);
        String::from_utf8_lossy(&log[start..]).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(program: &str, args: &[&str]) {
    let status = Command::new(program).args(args).status().unwrap();
    assert!(status.success(), "{program} {args:?}: {status}");
}
