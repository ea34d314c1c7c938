//! One writer at a time.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, flock, major, minor},
    io::Errno,
};

use crate::error::Error;

const RETRY: Duration = Duration::from_millis(20);

/// Takes the file for this process until it ends; the system gives it back even after a kill.
/// `flock` knows no time-out, so waiting is asking again.
///
/// # Errors
/// [`Error::Locked`] when another process still has it after `wait`.
pub(crate) fn exclusive(file: &File, path: &Path, wait: Duration) -> Result<(), Error> {
    let started = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if started.elapsed() < wait => thread::sleep(RETRY),
            Err(Errno::WOULDBLOCK) => {
                return Err(Error::Locked {
                    path: path.to_path_buf(),
                    holder: holder(file),
                });
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(Error::io("lock", path, io::Error::from(error))),
        }
    }
}

/// The process that has the lock, where the system tells: it makes the refusal easier to act on
/// and decides nothing.
fn holder(file: &File) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let device = metadata.dev();
    let place = format!(
        "{:02x}:{:02x}:{}",
        major(device),
        minor(device),
        metadata.ino()
    );
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>())
        .find(|fields| fields.get(1) == Some(&"FLOCK") && fields.get(5) == Some(&&*place))
        .and_then(|fields| fields.get(4)?.parse().ok())
        .filter(|pid| *pid != 0)
}
