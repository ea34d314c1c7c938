//! The seen file: the marks of the lines that were handed over.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Seek, SeekFrom},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    append,
    chunk::{Chunks, Preparation, Source},
    compact,
    error::Error,
    files,
    format::{Format, HEADER_BEGINS},
    index::Index,
    lock, place, say,
};

/// How much of a first line is looked at, and named where it is another than expected.
const HEADER_BYTES_MAX: usize = 4096;

pub(crate) struct Seen {
    file: File,
    path: PathBuf,
    format: Format,
    /// How many marks there are, and how many of them are too old.
    marks: u64,
    old: u64,
}

impl Seen {
    /// Opens and locks the file; nothing is read yet.
    pub(crate) fn open(path: &Path, format: Format, wait: Duration) -> Result<Self, Error> {
        let file = loop {
            let file = open(path)?;
            lock::exclusive(&file, path, wait)?;
            // While we waited somebody may have put another file in its place. A lock on the
            // old one would keep nobody away.
            if is_still(&file, path).map_err(|source| Error::io("look at", path, source))? {
                break file;
            }
        };
        let seen = Self {
            file,
            path: path.to_path_buf(),
            format,
            marks: 0,
            old: 0,
        };
        seen.check_settings()?;
        files::sync_name_of_new(&seen.file, path)?;
        Ok(seen)
    }

    pub(crate) fn metadata(&self) -> Result<Metadata, Error> {
        self.file
            .metadata()
            .map_err(|source| Error::io("look at", &self.path, source))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses a file that was filled with other settings, where that can be told.
    fn check_settings(&self) -> Result<(), Error> {
        files::refuse_other_terminator(&self.file, &self.path, self.format.terminator)?;
        let (begin, whole) = self.first_line()?;
        let header = self.format.header();
        if header.is_empty() {
            return match begin.strip_prefix(HEADER_BEGINS.as_bytes()) {
                Some(theirs) => Err(self.other_keys(theirs)),
                None => Ok(()),
            };
        }
        let ours = header.strip_suffix(&[self.format.terminator]);
        let ours = ours.unwrap_or_default();
        // A stop may have left half of it, or nothing.
        if begin == ours || (!whole && ours.starts_with(&begin)) {
            return Ok(());
        }
        match begin.strip_prefix(HEADER_BEGINS.as_bytes()) {
            Some(theirs) => Err(self.other_keys(theirs)),
            None => Err(self.other_keys(b"line")),
        }
    }

    /// Writes what is missing of the first line of a file of keys.
    fn complete_header(&self) -> Result<(), Error> {
        let header = self.format.header();
        let there = usize::try_from(self.metadata()?.len()).unwrap_or(usize::MAX);
        match header.get(there..) {
            None | Some([]) => Ok(()),
            Some(missing) => {
                self.append_bytes(missing)?;
                self.sync()
            }
        }
    }

    /// The first line without its terminator, or the beginning of it, and whether it has one.
    fn first_line(&self) -> Result<(Vec<u8>, bool), Error> {
        let mut begin = vec![0; HEADER_BYTES_MAX];
        let length = self
            .file
            .read_at(&mut begin, 0)
            .map_err(|source| self.unreadable(source))?;
        begin.truncate(length);
        let end = memchr::memchr(self.format.terminator, &begin);
        begin.truncate(end.unwrap_or(length));
        Ok((begin, end.is_some() || length == HEADER_BYTES_MAX))
    }

    fn other_keys(&self, theirs: &[u8]) -> Error {
        Error::OtherKeys {
            path: self.path.clone(),
            theirs: String::from_utf8_lossy(theirs).into_owned(),
            ours: self.format.marked(),
        }
    }

    /// Reads the whole file into the index. An end without terminator is not remembered but
    /// returned: whether it is a mark or half of one is for the caller to find out.
    pub(crate) fn load(&mut self, index: &mut Index) -> Result<Option<Vec<u8>>, Error> {
        let length = self.metadata()?.len();
        let begin = self.format.header().len() as u64;
        if length <= begin {
            return Ok(None);
        }
        let mut file = self
            .file
            .try_clone()
            .map_err(|source| self.unreadable(source))?;
        file.seek(SeekFrom::Start(begin))
            .map_err(|source| self.unreadable(source))?;
        let preparation = Preparation {
            format: self.format.of_marks(),
            hasher: Some(index.hasher().clone()),
            key_required: false,
        };
        let path = self.path.clone();
        let failed = move |source| Error::io("read", &path, source);
        let mut chunks = Chunks::read(file, preparation, failed)?;
        while let Some(chunk) = chunks.next()? {
            if chunk.end_completed() {
                let line = chunk.bytes().strip_suffix(&[self.format.terminator]);
                return Ok(line.map(Vec::from));
            }
            index.remember_all(&chunk);
            self.marks += chunk.ends().len() as u64;
            self.old += chunk.without_key();
            chunks.recycle(chunk);
        }
        Ok(None)
    }

    /// Gives back what marks take that are too old, where those are more than half of them.
    pub(crate) fn drop_old(&mut self) -> Result<(), Error> {
        if self.old * 2 <= self.marks {
            return Ok(());
        }
        match compact::replace(&self.file, &self.path, &self.format) {
            Ok(new) => {
                self.file = new;
                files::sync_name(&self.file, &self.path)
                    .map_err(|source| Error::io("make durable", &self.path, source))
            }
            Err(error) => {
                let (path, old) = (self.path.display(), self.old);
                say(&format!(
                    "{path}: {old} marks that are too old stay in it: {error}"
                ));
                Ok(())
            }
        }
    }

    /// Appends marks, without making them durable.
    ///
    /// The first line comes with the first mark: a run that failed before it, for its `--key` was
    /// a slip, must not tie the file to that key.
    pub(crate) fn append(&self, marks: &[u8]) -> Result<(), Error> {
        if !marks.is_empty() {
            self.complete_header()?;
        }
        self.append_bytes(marks)
    }

    fn append_bytes(&self, bytes: &[u8]) -> Result<(), Error> {
        append::to_file(&self.file, bytes, self.format.terminator)
            .map_err(|torn| self.unmarked(torn.source))
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

    fn unreadable(&self, source: io::Error) -> Error {
        Error::io("read", &self.path, source)
    }
}

impl Source for File {
    /// A regular file never makes anybody wait for a producer.
    fn ready(&self) -> io::Result<bool> {
        Ok(true)
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
