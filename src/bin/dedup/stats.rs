//! The figures of a run.

use std::{
    fmt, fs,
    time::{Duration, Instant},
};

use serde_json::json;

/// What a run has done so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) lines: u64,
    pub(crate) new: u64,
    pub(crate) without_key: u64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
}

impl Counts {
    pub(crate) fn copies(&self) -> u64 {
        self.lines - self.new
    }
}

/// What a run did.
pub(crate) struct Summary {
    counts: Counts,
    took: Duration,
}

impl Summary {
    pub(crate) fn new(counts: Counts, started: Instant) -> Self {
        Self {
            counts,
            took: started.elapsed(),
        }
    }

    /// One line. Its fields are described in docs/dedup.md: none goes away or changes its
    /// meaning, more may come.
    pub(crate) fn json(&self) -> String {
        let Self { counts, took } = self;
        json!({
            "lines": counts.lines,
            "new": counts.new,
            "copies": counts.copies(),
            "without_key": counts.without_key,
            "bytes_read": counts.bytes_read,
            "bytes_written": counts.bytes_written,
            "seconds": (took.as_secs_f64() * 1e6).round() / 1e6,
            "peak_memory_bytes": peak_memory(),
        })
        .to_string()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (counts, seconds) = (&self.counts, self.took.as_secs_f64());
        let (lines, new, copies) = (counts.lines, counts.new, counts.copies());
        write!(
            f,
            "{lines} lines read, {new} written, {copies} duplicates, "
        )?;
        if counts.without_key > 0 {
            write!(f, "{} of those written without a key, ", counts.without_key)?;
        }
        write!(f, "{seconds:.3} seconds")
    }
}

/// The most memory that the process had at once, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
