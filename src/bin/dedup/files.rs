//! Small questions about files that the state and the output both ask.

use std::{
    fs::{self, File, Metadata},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
};

use crate::error::Error;

/// Whether two open files are one, under whatever names they were opened.
pub(crate) fn same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// How much of a line a message quotes.
const QUOTED_BYTES_MAX: usize = 40;

/// The file's last line where that has no terminator, or the end of it where it is long.
pub(crate) fn unfinished_end(file: &File, terminator: u8) -> io::Result<Option<Vec<u8>>> {
    // One byte more than is quoted tells that the line is longer.
    let from = file.metadata()?.len();
    let from = from.saturating_sub(QUOTED_BYTES_MAX as u64 + 1);
    let mut end = vec![0; QUOTED_BYTES_MAX + 1];
    let length = file.read_at(&mut end, from)?;
    end.truncate(length);
    let start = memchr::memrchr(terminator, &end).map_or(0, |last| last + 1);
    let end = end.split_off(start);
    Ok((!end.is_empty()).then_some(end))
}

/// Refuses a file whose last byte ends the lines of the other kind of file. Half a line that a
/// killed writer left may look like that too; the message says how to go on from there.
pub(crate) fn refuse_other_terminator(
    file: &File,
    path: &Path,
    terminator: u8,
) -> Result<(), Error> {
    let mut last = [terminator];
    let mut look = || match file.metadata()?.len() {
        0 => Ok(0),
        length => file.read_at(&mut last, length - 1),
    };
    look().map_err(|source| Error::io("read", path, source))?;
    let reason = match (last, terminator) {
        ([b'\n'], 0) => {
            "its lines end in newlines: leave out --null, or end the file with a NUL if it is \
             one of --null's all the same"
        }
        ([0], b'\n') => {
            "its lines end in NUL: use --null, or end the file with a newline if it is one of \
             newlines all the same"
        }
        _ => return Ok(()),
    };
    Err(Error::Refused {
        path: path.to_path_buf(),
        reason,
    })
}

/// A line's end for a message.
pub(crate) fn quoted(line: &[u8]) -> String {
    let cut = line.len().saturating_sub(QUOTED_BYTES_MAX);
    let dots = if cut > 0 { "..." } else { "" };
    let text = String::from_utf8_lossy(&line[cut..]);
    format!("'{dots}{}'", text.escape_debug())
}

/// Makes a new file's name durable. Without it a power cut could leave the seen file and take
/// the out file away with the lines that are marked as written.
pub(crate) fn sync_name_of_new(file: &File, path: &Path) -> Result<(), Error> {
    let sync = || {
        if file.metadata()?.len() > 0 {
            return Ok(());
        }
        sync_name(file, path)
    };
    sync().map_err(|source| Error::io("make the new file durable", path, source))
}

/// Makes durable under which name a file is found.
pub(crate) fn sync_name(file: &File, path: &Path) -> io::Result<()> {
    let resolved = fs::canonicalize(path)?;
    match File::open(resolved.parent().unwrap_or(Path::new("/"))) {
        Ok(directory) => directory.sync_all(),
        // A directory may be open to writers and closed to readers. Then the file's own sync
        // has to do; the journalling file systems log a new name with it.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => file.sync_all(),
        Err(error) => Err(error),
    }
}
