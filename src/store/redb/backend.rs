//! The file under redb, with the checks that redb leaves out.

use std::fs::File;
use std::io::{self, ErrorKind};

use redb::backends::FileBackend;
use redb::{DatabaseError, StorageBackend};

/// redb's own file, but a read that goes past its end is refused before memory is taken for it: a
/// damaged page number can ask for terabytes, and memory that cannot be had ends the process, where
/// an error is an answer.
#[derive(Debug)]
pub(super) struct Bounded(FileBackend);

/// Where redb's header says how many pages a region has, as u32 LE. No checksum covers it.
const REGION_PAGES_AT: u64 = 20;
/// As many as its page numbers can name.
const REGION_PAGES_MAX: u32 = 1 << 20;

impl Bounded {
    /// Takes redb's lock on the file.
    pub(super) fn new(file: File) -> Result<Self, DatabaseError> {
        let this = Self(FileBackend::new(file)?);
        let pages = this.read(REGION_PAGES_AT, size_of::<u32>())?;
        let pages = pages.try_into().map_or(0, u32::from_le_bytes);
        // redb makes a list of them all, whatever the number: gigabytes, and a minute.
        if pages > REGION_PAGES_MAX {
            let many = format!("its header names regions of {pages} pages");
            return Err(io::Error::new(ErrorKind::InvalidData, many).into());
        }
        Ok(this)
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
