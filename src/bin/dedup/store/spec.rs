//! Which store is meant, and how it is opened: `sled:DIR`, `redb:DIR`, or a directory whose stamp
//! says what it is.

use std::{
    ffi::{OsStr, OsString},
    fmt, io,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

#[cfg(feature = "redb")]
use idempotent_consumer::store::RedbStore;
#[cfg(feature = "sled")]
use idempotent_consumer::store::SledStore;
use idempotent_consumer::store::StoreError;

use crate::error::Error;

/// What a store's log is kept in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    #[cfg(feature = "sled")]
    Sled,
    #[cfg(feature = "redb")]
    Redb,
}

impl Kind {
    /// What a directory is taken for until its stamp says otherwise.
    #[cfg(feature = "sled")]
    const FIRST: Self = Self::Sled;
    #[cfg(not(feature = "sled"))]
    const FIRST: Self = Self::Redb;

    fn named(name: &[u8]) -> Option<Self> {
        match name {
            #[cfg(feature = "sled")]
            b"sled" => Some(Self::Sled),
            #[cfg(feature = "redb")]
            b"redb" => Some(Self::Redb),
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "sled")]
            Self::Sled => "sled",
            #[cfg(feature = "redb")]
            Self::Redb => "redb",
        }
    }

    /// Opens a store that is there: a mistyped path must not begin one.
    fn open(self, directory: &Path) -> Result<Opened, StoreError> {
        match self {
            #[cfg(feature = "sled")]
            Self::Sled => {
                let store = SledStore::options().create(false).open(directory)?;
                Ok(Opened::Sled(Box::new(store)))
            }
            #[cfg(feature = "redb")]
            Self::Redb => {
                let store = RedbStore::options().create(false).open(directory)?;
                Ok(Opened::Redb(Box::new(store)))
            }
        }
    }
}

pub(super) enum Opened {
    #[cfg(feature = "sled")]
    Sled(Box<SledStore>),
    #[cfg(feature = "redb")]
    Redb(Box<RedbStore>),
}

/// A store as it is typed.
#[derive(Debug, PartialEq)]
pub(crate) struct Spec {
    /// `None` where the stamp is to say it.
    pub(crate) kind: Option<Kind>,
    pub(crate) directory: PathBuf,
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kind) = self.kind {
            write!(f, "{}:", kind.name())?;
        }
        self.directory.display().fmt(f)
    }
}

impl Spec {
    /// # Errors
    /// In words, where the directory is missing or the kind is not in this build.
    pub(crate) fn parse(typed: OsString) -> Result<Self, String> {
        let bytes = typed.as_bytes();
        let colon = bytes.iter().position(|byte| *byte == b':');
        let (kind, directory) = match colon.map(|at| (&bytes[..at], &bytes[at + 1..])) {
            Some((name @ (b"sled" | b"redb"), rest)) => {
                let kind = Kind::named(name).ok_or_else(|| absent(OsStr::from_bytes(name)))?;
                (Some(kind), OsString::from_vec(rest.to_vec()))
            }
            _ => (None, typed),
        };
        if directory.is_empty() {
            return Err("the directory of the store is missing".to_owned());
        }
        let directory = PathBuf::from(directory);
        Ok(Self { kind, directory })
    }

    /// Opens it, as what its stamp says where nothing was typed.
    pub(super) fn open(&self) -> Result<Opened, Error> {
        let first = self.kind.unwrap_or(Kind::FIRST);
        let opened = match first.open(&self.directory) {
            Err(StoreError::OtherEngine { theirs, .. }) if self.kind.is_none() => {
                let Some(kind) = Kind::named(theirs.as_bytes()) else {
                    return Err(Error::StoreUsage(absent(theirs.as_ref())));
                };
                kind.open(&self.directory)
            }
            opened => opened,
        };
        opened.map_err(|error| match error {
            StoreError::Unusable { path, source } if source.kind() == io::ErrorKind::NotFound => {
                Error::Refused {
                    path,
                    reason: "there is no store; name the directory that the consumer opens",
                }
            }
            StoreError::Locked { path, by } => Error::StoreInUse { path, by },
            error => Error::Store(error),
        })
    }
}

fn absent(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    format!("{name} is not in this build; build with the feature '{name}'")
}
