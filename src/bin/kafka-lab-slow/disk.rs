//! Small files that are locked, read and replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;

/// Pause between looks at a lock or a file.
pub(crate) const POLL: Duration = Duration::from_millis(10);

/// No state is larger; a larger file is not one.
const FILE_BYTES_MAX: u64 = 4_096;

/// Held until dropped.
#[must_use]
pub(crate) struct Lock {
    _file: File,
}

pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Takes the lock, or gives up (`None`) when it was held all the time.
pub(crate) fn lock(path: &Path, patience: Duration) -> Result<Option<Lock>, Error> {
    let failed = |source| Error::file("lock", path, source);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(failed)?;
    let deadline = Instant::now() + patience;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(Lock { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() >= deadline => return Ok(None),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => thread::sleep(POLL),
            Err(error) => return Err(failed(error.into())),
        }
    }
}

pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let mut text = Vec::new();
    match File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::file("read", path, error)),
    }
    match serde_json::from_slice(&text) {
        Ok(value) => Ok(Some(value)),
        Err(error) => Err(Error::Damaged {
            path: path.to_owned(),
            reason: error.to_string(),
        }),
    }
}

/// Replaces the file as a whole: a reader, or a crash, finds the old one or the new one.
pub(crate) fn replace<T: Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    let failed = |source| Error::file("write", path, source);
    let text = serde_json::to_vec(value).map_err(|error| failed(error.into()))?;
    let new = beside(path, &format!(".new.{}", std::process::id()));
    let replaced = File::create(&new)
        .and_then(|mut file| {
            file.write_all(&text)?;
            file.write_all(b"\n")?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&new, path));
    replaced.map_err(|error| {
        // Nothing points at it any more; the error that matters is the first one.
        let _ = fs::remove_file(&new);
        failed(error)
    })
}
