//! Where new lines go: a regular file, or a stream (pipe, FIFO, terminal, device, socket).

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    os::fd::AsFd,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    append::{self, Torn},
    error::Error,
    files, lock, place,
    stdin::Stdin,
};

/// How much is written to a stream before it is marked: what a pipe holds, so that a kill costs
/// no more repetitions than a reader may have left unread anyway.
const STREAM_PART_BYTES: usize = 64 * 1024;

pub(crate) struct Output {
    file: File,
    path: PathBuf,
    metadata: Metadata,
    is_stdout: bool,
    terminator: u8,
}

impl Output {
    /// Opens the path and writes nothing. A FIFO is waited for until it has a reader.
    pub(crate) fn open(path: &Path, terminator: u8) -> Result<Self, Error> {
        let file = open(path)?;
        let failed = |source| Error::io("look at", path, source);
        let metadata = file.metadata().map_err(failed)?;
        let stdout = stdout()
            .and_then(|stdout| stdout.metadata())
            .map_err(failed)?;
        let is_stdout = files::same(&metadata, &stdout);
        Ok(Self {
            file,
            path: path.to_path_buf(),
            metadata,
            is_stdout,
            terminator,
        })
    }

    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The file to read back what was handed over, where that can be done.
    pub(crate) fn readable(&self) -> Option<&File> {
        self.metadata.is_file().then_some(&self.file)
    }

    /// The file, where its content is this program's own to keep. What the shell redirected is
    /// not: `> new` begins an empty one at each call.
    #[cfg(any(feature = "sled", feature = "redb"))]
    pub(crate) fn kept(&self) -> Option<&File> {
        self.readable().filter(|_| !self.is_stdout)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps other writers away. A stream has no place where two could collide.
    pub(crate) fn lock(&self, wait: Duration) -> Result<(), Error> {
        if self.readable().is_none() {
            return Ok(());
        }
        lock::exclusive(&self.file, &self.path, wait)?;
        files::sync_name_of_new(&self.file, &self.path)
    }

    /// Refuses a file whose lines end otherwise, where that can be told.
    pub(crate) fn check_settings(&self) -> Result<(), Error> {
        match self.readable() {
            Some(file) => files::refuse_other_terminator(file, &self.path, self.terminator),
            None => Ok(()),
        }
    }

    /// How many bytes of `lines`, whole lines, are handed over in one go.
    pub(crate) fn part(&self, lines: &[u8]) -> usize {
        if self.readable().is_some() || lines.len() <= STREAM_PART_BYTES {
            return lines.len();
        }
        let (head, tail) = lines.split_at(STREAM_PART_BYTES);
        match memchr::memrchr(self.terminator, head) {
            Some(last) => last + 1,
            None => memchr::memchr(self.terminator, tail)
                .map_or(lines.len(), |first| STREAM_PART_BYTES + first + 1),
        }
    }

    /// Hands lines over: durably into a file, into the system's hands otherwise.
    pub(crate) fn append(&self, lines: &[u8]) -> Result<(), Torn> {
        let Some(file) = self.readable() else {
            return append::to_stream(&self.file, lines, self.terminator);
        };
        let appended = append::to_file(file, lines, self.terminator);
        // Lines whose durability is in doubt do not count as handed over, also when the append
        // had failed before for a reason of its own.
        match (file.sync_data(), appended) {
            (Ok(()), appended) => appended,
            (Err(_), Err(torn)) => Err(Torn::nothing(torn.source)),
            (Err(source), Ok(())) => Err(Torn::nothing(source)),
        }
    }

    /// What the failure of an append means to the user.
    pub(crate) fn failure(&self, source: io::Error) -> Error {
        if self.is_stdout && source.kind() == io::ErrorKind::BrokenPipe {
            return Error::ReaderGone;
        }
        Error::Output {
            path: self.path.clone(),
            source,
        }
    }
}

/// Looks at the path without making anything, and says whether there is something.
///
/// # Errors
/// Where it cannot be the out file.
pub(crate) fn check(path: &Path, stdin: &Stdin) -> Result<bool, Error> {
    let Some(there) = place::file(path, "--out or DEDUP_OUT")? else {
        return Ok(false);
    };
    // A file that is fed with its own end never comes to an end.
    let input = stdin.metadata().map_err(Error::Input)?;
    if there.is_file() && files::same(&there, &input) {
        return Err(Error::Refused {
            path: path.to_path_buf(),
            reason: "standard input is the out file; it would be fed with its own output",
        });
    }
    Ok(true)
}

fn open(path: &Path) -> Result<File, Error> {
    // Only a regular file is opened for reading too: it may end inside a line. A FIFO opened
    // that way would have ourselves as its reader, and would swallow lines without one.
    let regular = match fs::metadata(path) {
        Ok(metadata) => metadata.is_file(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    let opened = OpenOptions::new()
        .read(regular)
        .append(true)
        .create(true)
        .open(path);
    match opened {
        Ok(file) => Ok(file),
        // /dev/stdout cannot be opened anew where it is a socket, or another user's pipe.
        Err(source) => {
            own_stdout(path).ok_or_else(|| Error::io("open for appending", path, source))
        }
    }
}

/// Standard output itself, when that is what the path names.
fn own_stdout(path: &Path) -> Option<File> {
    let named = fs::metadata(path).ok()?;
    let stdout = stdout().ok()?;
    let own = !named.is_file() && files::same(&named, &stdout.metadata().ok()?);
    own.then_some(stdout)
}

fn stdout() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}
