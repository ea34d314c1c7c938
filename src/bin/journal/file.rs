//! The file: appended to and looked at, never cut, never overwritten.

use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::FileExt,
    path::Path,
};

use super::{Error, Journal};

impl Journal {
    /// Appends lines that were [recorded](Journal::record) last, durably.
    ///
    /// # Errors
    /// Where somebody else has written into the file, and where it cannot be written. The lines
    /// are in the store then, and in the file after the next start.
    pub(crate) fn append(&self, file: &File, path: &Path, lines: &[u8]) -> Result<(), Error> {
        let (length, expected) = (length(file, path)?, self.length() - lines.len() as u64);
        if length != expected {
            return Err(self.not_ours(path, length, length.min(expected)));
        }
        append(file, path, lines)?;
        sync(file, path)
    }
}

pub(super) fn length(file: &File, path: &Path) -> Result<u64, Error> {
    let metadata = file.metadata().map_err(Error::read(path))?;
    Ok(metadata.len())
}

/// Whether the file has these bytes there.
pub(super) fn holds(file: &File, path: &Path, position: u64, bytes: &[u8]) -> Result<bool, Error> {
    let mut there = vec![0; bytes.len()];
    match file.read_exact_at(&mut there, position) {
        Ok(()) => Ok(there == bytes),
        // Cut short since it was measured.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(Error::read(path)(error)),
    }
}

pub(super) fn append(mut file: &File, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    file.write_all(bytes).map_err(Error::write(path))
}

pub(super) fn sync(file: &File, path: &Path) -> Result<(), Error> {
    file.sync_data().map_err(Error::write(path))
}
