//! What is asked of the operating system before a commit is acknowledged.

use std::fs;
use std::process::{Command, Stdio};

use crate::child;
use crate::kept::TRACED;
use crate::skip::cannot_run;

/// What was traced of a number of commits.
pub(crate) struct Traced {
    pub(crate) commits: usize,
    /// How many of the acknowledgements a write-out of the log's file came before.
    pub(crate) written_out: usize,
    /// Before how many came a sync of it, behind the write-out if there was one.
    pub(crate) synced: usize,
    /// The syncs in all.
    pub(crate) syncs: usize,
}

/// `None` where system calls cannot be traced.
pub(crate) fn traced(role: &str) -> Option<Traced> {
    let parent = tempfile::tempdir().unwrap();
    let probe = Command::new("strace")
        .args(["-f", "true"])
        .stderr(Stdio::null())
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        cannot_run("strace is not installed, or may not trace");
        return None;
    }
    let trace = parent.path().join("trace");
    let calls = "trace=write,fdatasync,sync_file_range";
    let out = trace.to_str().unwrap();
    let wrapper = ["strace", "-f", "-y", "-e", calls, "-o", out];
    let mut child = child::start(&wrapper, role, &parent.path().join("seen"));
    let mut heard = 0;
    // More than are looked at: the tracer is stopped while it has the last ones to write down still.
    while heard < 110 {
        let line = child.hear().expect("the child ended by itself");
        heard += usize::from(line.starts_with("acknowledged"));
    }
    // The child dies of the closed pipe at the latest, once its tracer is gone.
    child.kill();
    Some(counted(&fs::read_to_string(&trace).unwrap()))
}

fn counted(trace: &str) -> Traced {
    let mut traced = Traced {
        commits: 0,
        written_out: 0,
        synced: 0,
        syncs: 0,
    };
    let (mut written_out, mut syncs) = (false, 0);
    // What came before the first commit was for the leases.
    let from = trace.find("doubt").unwrap();
    for line in trace[from..].lines() {
        if line.contains("sync_file_range(") && line.contains(TRACED) {
            // A sync before it would not cover it.
            (written_out, syncs) = (true, 0);
        } else if line.contains("fdatasync(") && line.contains(TRACED) {
            syncs += 1;
        } else if line.contains("acknowledged") {
            traced.commits += 1;
            traced.written_out += usize::from(written_out);
            traced.synced += usize::from(syncs > 0);
            traced.syncs += syncs;
            (written_out, syncs) = (false, 0);
        }
    }
    traced
}
