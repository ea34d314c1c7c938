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

/// Whether the file holds something and does not end in a newline.
pub(crate) fn ends_inside_a_line(file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    if length == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.read_exact_at(&mut last, length - 1)?;
    Ok(last != *b"\n")
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
