//! What the user named, looked at before anything is created: a refused start leaves nothing
//! behind, and the refusal says what to do.

use std::{
    fs::{self, Metadata},
    io,
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, OFlags, access, fcntl_getfl, fstat, stat};

const NULL_DEVICE: &str = "/dev/null";

/// As many as Linux follows.
const LINKS_MAX: usize = 40;

/// Why the program does not start, and the way out.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refusal(String);

impl Refusal {
    pub(crate) fn new(path: &Path, reason: &str) -> Self {
        Self(format!("{}: {reason}", path.display()))
    }
}

/// What is at the path of a file to append to, `None` where it is yet to be made. `names` is how
/// another one is named.
///
/// # Errors
/// Where it is a directory, cannot be written or made, or is a standard output that is closed.
pub(crate) fn file(path: &Path, names: &str) -> Result<Option<Metadata>, Refusal> {
    let there = match fs::metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return parent(path, &format!("name another file with {names}")).map(|()| None);
        }
        Err(error) => {
            let reason = format!(
                "cannot look at it: {error}; create the directory, or name another file with {names}"
            );
            return Err(Refusal::new(path, &reason));
        }
    };
    if there.is_dir() {
        let reason = format!("is a directory; name a file with {names}");
        return Err(Refusal::new(path, &reason));
    }
    if there.is_file() {
        access(path, Access::READ_OK | Access::WRITE_OK).map_err(|error| {
            let error = io::Error::from(error);
            let reason = format!(
                "cannot read and write it: {error}; change its permissions, or name another \
                 file with {names}"
            );
            Refusal::new(path, &reason)
        })?;
    } else if path != Path::new(NULL_DEVICE) && is_null(path) && closed(io::stdout()) {
        let reason = "standard output is closed, so no line would arrive; nothing was marked. \
                      Connect it, or to have no lines say >/dev/null";
        return Err(Refusal::new(path, reason));
    }
    Ok(Some(there))
}

/// Refuses a store's path that no store can be at. `not_a_directory` is what to do about a file.
///
/// # Errors
/// Where it is no directory, and where the directory that it would be in is missing: a mistyped
/// path or a disk that is not mounted must not begin an empty store.
#[cfg(any(feature = "sled", feature = "redb"))]
#[cfg_attr(
    not(feature = "sled"),
    allow(dead_code, reason = "ship-process keeps its state in sled alone")
)]
pub(crate) fn store(path: &Path, names: &str, not_a_directory: &str) -> Result<(), Refusal> {
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => Ok(()),
        Ok(_) => Err(Refusal::new(path, not_a_directory)),
        Err(_) => parent(path, &format!("name another store with {names}")),
    }
}

/// Whether something can be made at the path.
fn parent(path: &Path, otherwise: &str) -> Result<(), Refusal> {
    let made_at = made_at(path);
    let parent = directory(&made_at);
    match access(parent, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::NOENT) => {
            let reason = format!(
                "its directory {} is missing; create the directory, or {otherwise}",
                parent.display()
            );
            Err(Refusal::new(path, &reason))
        }
        Err(error) => {
            let reason = format!(
                "cannot make it in {}: {}; mend the directory, or {otherwise}",
                parent.display(),
                io::Error::from(error)
            );
            Err(Refusal::new(path, &reason))
        }
    }
}

/// Where it is made: at the end of the links, if there are some that lead nowhere yet.
fn made_at(path: &Path) -> PathBuf {
    let mut end = path.to_path_buf();
    // A circle of links was refused before; this only bounds what changes meanwhile.
    for _ in 0..LINKS_MAX {
        match fs::read_link(&end) {
            Ok(target) => end = directory(&end).join(target),
            Err(_) => break,
        }
    }
    end
}

/// The directory that a path names something in.
fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Whether the descriptor was closed when the program started. The runtime puts the null device,
/// open in both directions, in such a place; a shell opens it in the one direction that it needs.
fn closed(descriptor: impl AsFd) -> bool {
    let both = fcntl_getfl(&descriptor)
        .is_ok_and(|flags| flags & (OFlags::WRONLY | OFlags::RDWR) == OFlags::RDWR);
    let null = stat(NULL_DEVICE).map(|null| null.st_rdev).ok();
    both && null.is_some() && fstat(&descriptor).map(|open| open.st_rdev).ok() == null
}

fn is_null(path: &Path) -> bool {
    let device = |path: &Path| stat(path).map(|there| there.st_rdev).ok();
    device(path).is_some() && device(path) == device(Path::new(NULL_DEVICE))
}
