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

/// The file's last line where that has no newline, or the end of it where it is long.
pub(crate) fn unfinished_end(file: &File) -> io::Result<Option<Vec<u8>>> {
    // One byte more than is quoted tells that the line is longer.
    let from = file.metadata()?.len();
    let from = from.saturating_sub(QUOTED_BYTES_MAX as u64 + 1);
    let mut end = vec![0; QUOTED_BYTES_MAX + 1];
    let length = file.read_at(&mut end, from)?;
    end.truncate(length);
    let start = memchr::memrchr(b'\n', &end).map_or(0, |newline| newline + 1);
    let end = end.split_off(start);
    Ok((!end.is_empty()).then_some(end))
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
        let resolved = fs::canonicalize(path)?;
        match File::open(resolved.parent().unwrap_or(Path::new("/"))) {
            Ok(directory) => directory.sync_all(),
            // A directory may be open to writers and closed to readers. Then the file's own sync
            // has to do; the journalling file systems log a new name with it.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => file.sync_all(),
            Err(error) => Err(error),
        }
    };
    sync().map_err(|source| Error::io("make the new file durable", path, source))
}
