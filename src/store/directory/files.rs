//! Writing small files so that a crash leaves the old one or the new one, and the store's lock.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::store::StoreError;

/// The error for something that the operating system refused.
pub(in crate::store) fn unusable(path: &Path) -> impl FnOnce(io::Error) -> StoreError + '_ {
    |source| StoreError::Unusable {
        path: path.to_owned(),
        source,
    }
}

pub(in crate::store) fn failed<'a, E: ToString>(
    path: &'a Path,
    operation: &'static str,
) -> impl FnOnce(E) -> StoreError + 'a {
    move |error| StoreError::Io {
        path: path.to_owned(),
        operation,
        message: error.to_string(),
    }
}

pub(in crate::store) fn damaged(path: &Path, what: impl Into<String>) -> StoreError {
    StoreError::Damaged {
        path: path.to_owned(),
        what: what.into(),
    }
}

/// Replaces a file's content as a whole. Readable by its owner alone: the stamp holds a secret.
pub(in crate::store) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(content)?;
    // Content before name: a crash must not leave the name on a file without it.
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_parent(path)
}

/// Makes a new or changed name in a directory durable.
pub(in crate::store) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => File::open(".")?.sync_all(),
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Held as long as the store is open; the operating system lets go of it when the process dies.
pub(super) struct Lock(File);

impl Lock {
    /// Takes the lock or says who has it.
    pub(super) fn take(directory: &Path, path: &PathBuf) -> Result<Self, StoreError> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(unusable(path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                // The number is a courtesy: without it the message is only shorter.
                let _ = file.read_to_string(&mut holder);
                let holder = holder.trim();
                let by = if holder.is_empty() {
                    String::new()
                } else {
                    format!(" by process {holder}")
                };
                return Err(StoreError::Locked {
                    path: directory.to_owned(),
                    by,
                });
            }
            Err(error) => return Err(unusable(path)(error.into())),
        }
        file.set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(unusable(path))?;
        Ok(Self(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing would do, but for a child that another thread is just starting: until it runs
        // its own program it holds a copy of the open file, and the lock with it.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_open_file_in_a_starting_child_does_not_keep_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let lock = Lock::take(dir.path(), &path).unwrap();
        let childs = lock.0.try_clone().unwrap();
        assert!(Lock::take(dir.path(), &path).is_err());
        drop(lock);
        Lock::take(dir.path(), &path).unwrap();
        drop(childs);
    }
}
