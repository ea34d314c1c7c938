//! The file under redb, with the one check that redb leaves out.

use std::fs::File;
use std::io::{self, ErrorKind};

use redb::backends::FileBackend;
use redb::{DatabaseError, StorageBackend};

/// redb's own file, but a read that goes past its end is refused before memory is taken for it: a
/// damaged page number can ask for terabytes, and memory that cannot be had ends the process, where
/// an error is an answer.
#[derive(Debug)]
pub(super) struct Bounded(FileBackend);

impl Bounded {
    /// Takes redb's lock on the file.
    pub(super) fn new(file: File) -> Result<Self, DatabaseError> {
        FileBackend::new(file).map(Self)
    }
}

impl StorageBackend for Bounded {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let end = offset.checked_add(len as u64);
        if end.is_none_or(|end| self.0.len().is_ok_and(|length| end > length)) {
            let past = format!("{len} bytes at {offset} are past the file's end");
            return Err(io::Error::new(ErrorKind::UnexpectedEof, past));
        }
        self.0.read(offset, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self, eventual: bool) -> io::Result<()> {
        self.0.sync_data(eventual)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}
