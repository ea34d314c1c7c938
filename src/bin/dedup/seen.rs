//! The seen file: the lines that were handed over, on disk and as an index in memory.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    append,
    error::Error,
    files,
    index::Index,
    lines::{Lines, content},
    lock, place,
};

pub(crate) struct Seen {
    file: File,
    path: PathBuf,
    index: Index,
}

impl Seen {
    /// Opens and locks the file; nothing is read yet.
    pub(crate) fn open(path: &Path, wait: Duration) -> Result<Self, Error> {
        let file = loop {
            let file = open(path)?;
            lock::exclusive(&file, path, wait)?;
            // While we waited somebody may have put another file in its place. A lock on the
            // old one would keep nobody away.
            if is_still(&file, path).map_err(|source| Error::io("look at", path, source))? {
                break file;
            }
        };
        files::sync_name_of_new(&file, path)?;
        let index = Index::new().map_err(|error| {
            Error::io(
                "draw a random key for",
                path,
                io::Error::other(error.to_string()),
            )
        })?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            index,
        })
    }

    pub(crate) fn metadata(&self) -> Result<Metadata, Error> {
        self.file
            .metadata()
            .map_err(|source| Error::io("look at", &self.path, source))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the whole file into the index. An end without newline is not remembered but
    /// returned: whether it is a line or half of one is for the caller to find out.
    pub(crate) fn load(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let mut lines = Lines::new(&self.file);
        while lines
            .fill()
            .map_err(|source| Error::io("read", &self.path, source))?
        {
            let ended_inside = lines.end_completed();
            let block = lines.whole();
            if ended_inside {
                return Ok(Some(content(block).to_vec()));
            }
            self.index.insert(block, |_| {});
        }
        Ok(None)
    }

    /// Remembers the lines of a block in memory and gives those to `new` that are.
    pub(crate) fn insert(&mut self, block: &[u8], new: impl FnMut(&[u8])) {
        self.index.insert(block, new);
    }

    pub(crate) fn contains(&self, line: &[u8]) -> bool {
        self.index.contains(line)
    }

    /// Appends bytes that end in a newline, without making them durable.
    pub(crate) fn append(&self, lines: &[u8]) -> Result<(), Error> {
        append::to_file(&self.file, lines).map_err(|torn| self.unmarked(torn.source))
    }

    /// Takes away so many bytes at the end of the file.
    pub(crate) fn cut_end(&self, bytes: usize) -> Result<(), Error> {
        let cut = || {
            let length = self.file.metadata()?.len();
            self.file.set_len(length.saturating_sub(bytes as u64))
        };
        cut().map_err(|source| Error::io("mend", &self.path, source))?;
        self.sync()
    }

    /// Makes durable what was appended.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.file
            .sync_data()
            .map_err(|source| self.unmarked(source))
    }

    fn unmarked(&self, source: io::Error) -> Error {
        Error::Mark {
            path: self.path.clone(),
            source,
        }
    }
}

/// Looks at the path without making anything.
///
/// # Errors
/// Where it cannot be the seen file.
pub(crate) fn check(path: &Path) -> Result<(), Error> {
    #[cfg(any(feature = "sled", feature = "redb"))]
    if path.join("stamp").exists() {
        return Err(Error::Refused {
            path: path.to_path_buf(),
            reason: "this is a store: use --store sled, or redb where 'dedup store show' says so",
        });
    }
    // A FIFO or a device may do something on being opened, and neither remembers.
    match place::file(path, "--seen or DEDUP_SEEN")? {
        Some(there) if !there.is_file() => Err(Error::Refused {
            path: path.to_path_buf(),
            reason: "the seen file must be a regular file, for it is read again on each run",
        }),
        _ => Ok(()),
    }
}

fn open(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(path)
        .map_err(|source| Error::io("open for reading and appending", path, source))
}

fn is_still(file: &File, path: &Path) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(named) => Ok(files::same(&named, &file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
