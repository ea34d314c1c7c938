//! A seen file without the marks that are too old, in the place of the one with them.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    os::unix::fs::{MetadataExt, fchown},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    format::Format,
    lines::{BUFFER_BYTES, Lines, split},
    lock,
};

/// Copies what still counts into a new file, durably, and puts that in the place of the other.
/// Returns it, locked as the other is; that it has the name is not durable yet. Where it fails, the
/// other is what it was.
pub(crate) fn replace(old: &File, path: &Path, format: &Format) -> io::Result<File> {
    let target = fs::canonicalize(path)?;
    let beside = beside(&target);
    // The seen file's lock keeps away whoever else would be at work here: it was left by a stop.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let replaced = fill(old, &beside, format).and_then(|new| {
        fs::rename(&beside, &target)?;
        Ok(new)
    });
    replaced.inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// In the same directory: names cannot be exchanged over file systems.
fn beside(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".compacting");
    name.into()
}

fn fill(old: &File, beside: &Path, format: &Format) -> io::Result<File> {
    let metadata = old.metadata()?;
    if metadata.nlink() > 1 {
        return Err(io::Error::other(
            "it has another name, under which it would stay",
        ));
    }
    let mut options = OpenOptions::new();
    let mut new = options
        .read(true)
        .append(true)
        .create_new(true)
        .open(beside)?;
    // Before it has its name: whoever opens it then finds it taken.
    lock::exclusive(&new, beside, Duration::ZERO).map_err(io::Error::other)?;
    new.set_permissions(metadata.permissions())?;
    let made = new.metadata()?;
    if (made.uid(), made.gid()) != (metadata.uid(), metadata.gid()) {
        fchown(&new, Some(metadata.uid()), Some(metadata.gid()))?;
    }
    let marks = format.of_marks();
    let mut kept = format.header();
    let mut old = old.try_clone()?;
    old.seek(SeekFrom::Start(kept.len() as u64))?;
    let mut lines = Lines::new(old, format.terminator);
    while lines.fill()? {
        for mark in split(lines.whole(), format.terminator) {
            if marks.recipe.key(mark).is_ok() {
                kept.extend_from_slice(mark);
                kept.push(format.terminator);
            }
        }
        if kept.len() >= BUFFER_BYTES {
            new.write_all(&kept)?;
            kept.clear();
        }
    }
    new.write_all(&kept)?;
    new.sync_all()?;
    Ok(new)
}
