//! The processed file: only ever appended to.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use crate::{error::Error, place};

/// How another file is named.
pub(crate) const PROCESSED_NAMES: &str = "--processed or SHIP_PROCESSED";

/// How much is written at once. A part ends with a line, so a reader never sees half of one.
const PART_BYTES: usize = 64 * 1024;

pub(crate) struct Processed {
    file: File,
    path: PathBuf,
    is_file: bool,
}

impl Processed {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        place::file(path, PROCESSED_NAMES)?;
        let open = || {
            // A regular file is opened for reading too, to see whether it ends inside a line. A
            // FIFO opened that way would have ourselves as its reader.
            let is_file = fs::metadata(path).map_or(true, |metadata| metadata.is_file());
            let file = OpenOptions::new()
                .read(is_file)
                .append(true)
                .create(true)
                .open(path)?;
            Ok(Self {
                path: path.to_path_buf(),
                is_file: file.metadata()?.is_file(),
                file,
            })
        };
        open().map_err(|source| Error::Open {
            path: path.to_path_buf(),
            source,
        })
    }

    /// The file, if it is a regular one.
    #[cfg(feature = "sled")]
    pub(crate) fn regular(&self) -> Option<&File> {
        self.is_file.then_some(&self.file)
    }

    #[cfg(feature = "sled")]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends whole lines; when it returns they are on disk, if that is where the file is.
    pub(crate) fn append(&self, lines: &[u8]) -> Result<(), Error> {
        self.write(lines).map_err(|source| Error::Write {
            path: self.path.clone(),
            source,
        })
    }

    fn write(&self, mut lines: &[u8]) -> io::Result<()> {
        let mut file = &self.file;
        if self.is_file && !lines.is_empty() && self.ends_inside_a_line()? {
            // An earlier run died in the middle of a line, and the next must not be fused to it.
            file.write_all(b"\n")?;
        }
        while !lines.is_empty() {
            let (part, rest) = lines.split_at(part(lines));
            file.write_all(part)?;
            lines = rest;
        }
        if self.is_file {
            file.sync_all()
        } else {
            Ok(())
        }
    }

    fn ends_inside_a_line(&self) -> io::Result<bool> {
        let length = self.file.metadata()?.len();
        let mut last = *b"\n";
        if length > 0 {
            self.file.read_exact_at(&mut last, length - 1)?;
        }
        Ok(last != *b"\n")
    }
}

/// The length of the whole lines that fit a part, or of one line when the first is longer.
fn part(lines: &[u8]) -> usize {
    let fits = &lines[..lines.len().min(PART_BYTES)];
    memchr::memrchr(b'\n', fits)
        .or_else(|| memchr::memchr(b'\n', lines))
        .map_or(lines.len(), |newline| newline + 1)
}
