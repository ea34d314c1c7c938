//! What a contender takes, by the operating system's count.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::Outcome;

/// What the files below `directory` take, not how long they say they are.
///
/// # Errors
///
/// The directory cannot be read.
pub fn bytes_on_disk(directory: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        bytes += if meta.is_dir() {
            bytes_on_disk(&entry.path())?
        } else {
            meta.blocks() * 512
        };
    }
    Ok(bytes)
}

/// The most memory that a process has had resident so far, in KiB.
///
/// # Errors
///
/// The process is gone, or `/proc` says nothing of it.
pub fn peak_memory_kib(pid: u32) -> Outcome<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    Ok(number
        .ok_or_else(|| format!("/proc/{pid}/status has no VmHWM"))?
        .parse()?)
}

/// The middle of some numbers; of an even count, the upper of the middle two.
#[must_use]
pub fn median(numbers: &[u64]) -> u64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}
