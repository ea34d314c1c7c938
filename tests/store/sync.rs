//! What is asked of the operating system before a commit is acknowledged.

use std::fs;
use std::process::{Command, Stdio};

use crate::child;
use crate::skip::cannot_run;

/// So many commits are looked at, at least.
const COMMITS: usize = 100;

/// How often each acknowledgement but the first was preceded by a sync of sled's data file, and
/// by a write-out of it; `None` where system calls cannot be traced.
fn traced(role: &str) -> Option<(usize, usize, usize)> {
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
    // More than are asked for: the tracer is stopped while it still has the last one to write down.
    while heard < COMMITS + 10 {
        let line = child.hear().expect("the child ended by itself");
        heard += usize::from(line.starts_with("acknowledged"));
    }
    // The child dies of the closed pipe at the latest, once its tracer is gone.
    child.kill();
    let (mut commits, mut synced, mut written) = (0, 0, 0);
    let (mut sync, mut range) = (false, false);
    for line in fs::read_to_string(&trace).unwrap().lines() {
        if line.contains("sync_file_range(") && line.contains("/log/db>") {
            range = true;
        } else if line.contains("fdatasync(") && line.contains("/log/db>") {
            // After the write-out, or it would not cover it.
            sync = range;
        } else if line.contains("acknowledged") {
            commits += 1;
            synced += usize::from(sync);
            written += usize::from(range);
            (sync, range) = (false, false);
        }
    }
    Some((commits, synced, written))
}

// C078
#[test]
fn under_power_every_commit_is_synced_before_it_is_acknowledged() {
    if let Some((commits, synced, written)) = traced("commit-power") {
        assert!(commits >= COMMITS, "{commits}");
        assert_eq!((synced, written), (commits, commits));
    }
}

#[test]
fn under_process_every_commit_is_written_out_and_none_is_synced() {
    if let Some((commits, synced, written)) = traced("commit-process") {
        assert!(commits >= COMMITS, "{commits}");
        assert_eq!((synced, written), (0, commits));
    }
}
