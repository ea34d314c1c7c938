//! The commit log in redb.
//!
//! Every call is made behind `catch_unwind`: redb asserts what it expects of its files.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{
    Builder, Database, DatabaseError, StorageError, Table, TableDefinition, WriteTransaction,
};

use super::backend::Bounded;
use crate::store::directory::{Engine, Failure, Log, Record, files, guarded};
use crate::store::{Durability, StoreError};

const NAME: &str = "redb";
pub(super) const RECORDS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("records");

type Bytes = Vec<u8>;

/// Any error of redb's. Boxed, since they are large.
#[derive(Debug)]
struct Fault(Box<redb::Error>);

impl<E: Into<redb::Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self(Box::new(error.into()))
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A log in redb.
pub struct Redb {
    /// `None` only while it is dropped.
    db: Option<Database>,
    /// What was inserted and is not hardened yet.
    open: Mutex<Option<WriteTransaction>>,
    path: PathBuf,
    durability: Durability,
}

impl Redb {
    pub(super) fn open(
        path: &Path,
        durability: Durability,
        cache_bytes: usize,
    ) -> Result<Self, StoreError> {
        let mut builder = Builder::new();
        builder
            .set_cache_size(cache_bytes)
            // What redb 3 reads as well.
            .create_with_file_format_v3(true);
        if !path.exists() {
            create(path, &builder)?;
        }
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(files::unusable(path))?;
        // An empty one would be made a new, empty log.
        if file.metadata().map_err(files::unusable(path))?.len() == 0 {
            return Err(files::damaged(path, "the log is an empty file"));
        }
        let db = open(path, file, &mut builder)?;
        Ok(Self {
            db: Some(db),
            open: Mutex::new(None),
            path: path.to_owned(),
            durability,
        })
    }

    fn transaction(&self) -> MutexGuard<'_, Option<WriteTransaction>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn db(&self) -> Result<&Database, Fault> {
        self.db.as_ref().ok_or(StorageError::PreviousIo.into())
    }

    /// Changes the open transaction, or begins one.
    fn write(
        &self,
        operation: &'static str,
        change: impl FnOnce(&mut Table<'_, &'static [u8], &'static [u8]>) -> Result<(), Fault>,
    ) -> Result<(), StoreError> {
        let mut open = self.transaction();
        // Put back only after a success: what a failure left is never committed.
        self.guarded(operation, || {
            let transaction = match open.take() {
                Some(transaction) => transaction,
                None => self.db()?.begin_write()?,
            };
            change(&mut transaction.open_table(RECORDS)?)?;
            *open = Some(transaction);
            Ok(())
        })
    }

    fn commit(&self, durability: redb::Durability) -> Result<(), StoreError> {
        let mut open = self.transaction();
        self.guarded("committing to the log", || {
            let mut transaction = match open.take() {
                Some(transaction) => transaction,
                None => self.db()?.begin_write()?,
            };
            transaction.set_durability(durability);
            Ok(transaction.commit()?)
        })
    }

    fn guarded<T>(
        &self,
        operation: &'static str,
        call: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        guarded(NAME, operation, call)
            .map_err(|failure| files::failed(&self.path, operation)(failure))
    }
}

impl Drop for Redb {
    fn drop(&mut self) {
        // The transaction first: closing writes a last one, and waits for any other to end. Both
        // may panic after a failure, of which the store was told.
        let transaction = self.transaction().take();
        let _ = self.guarded("dropping what was not committed", || {
            drop(transaction);
            Ok(())
        });
        let db = self.db.take();
        let _ = self.guarded("closing the log", || {
            drop(db);
            Ok(())
        });
    }
}

/// Makes an empty log under a name of its own first: one that a crash left half made would look
/// like a damaged one.
fn create(path: &Path, builder: &Builder) -> Result<(), StoreError> {
    let new = path.with_extension("new");
    if let Err(error) = fs::remove_file(&new) {
        if error.kind() != ErrorKind::NotFound {
            return Err(files::unusable(&new)(error));
        }
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)
        .map_err(files::unusable(&new))?;
    let make = || -> Result<(), Fault> {
        let db = builder.create_file(file)?;
        let transaction = db.begin_write()?;
        transaction.open_table(RECORDS)?;
        Ok(transaction.commit()?)
    };
    guarded(NAME, "making the log", make)
        .map_err(|failure| files::failed(&new, "making the log")(failure))?;
    fs::rename(&new, path)
        .and_then(|()| files::sync_parent(path))
        .map_err(files::failed(path, "making the log"))
}

fn open(path: &Path, file: File, builder: &mut Builder) -> Result<Database, StoreError> {
    let repaired = Arc::new(AtomicBool::new(false));
    let said = Arc::clone(&repaired);
    builder.set_repair_callback(move |_| said.store(true, Ordering::Relaxed));
    let opened = guarded(NAME, "opening the log", || {
        let backend = Bounded::new(file)?;
        builder.create_with_backend(backend)
    });
    let mut db = opened.map_err(refusal(path))?;
    // Where it was not closed in order, it has been compared with its checksums just now. Else
    // redb believes its pages, also those that say which of them are free to be written over.
    if !repaired.load(Ordering::Relaxed) {
        let whole = guarded(NAME, "checking the log", || db.check_integrity());
        if !whole.map_err(refusal(path))? {
            tracing::warn!(path = %path.display(), "redb's list of free pages was wrong, and was made anew");
        }
    }
    let table = guarded(NAME, "opening the log", || -> Result<(), Fault> {
        db.begin_read()?.open_table(RECORDS)?;
        Ok(())
    });
    table.map_err(|failure| files::damaged(path, failure.to_string()))?;
    Ok(db)
}

/// What a failure to open means: somebody else's lock, the operating system's word, or damage.
fn refusal(path: &Path) -> impl FnOnce(Failure<DatabaseError>) -> StoreError + '_ {
    move |failure| match failure {
        Failure::Engine(_, DatabaseError::DatabaseAlreadyOpen) => StoreError::Locked {
            path: path.to_owned(),
            by: String::new(),
        },
        Failure::Engine(_, DatabaseError::Storage(StorageError::Io(error)))
            // redb's for a file that is none of its own, and the one for a file that is too short.
            if ![ErrorKind::InvalidData, ErrorKind::UnexpectedEof].contains(&error.kind()) =>
        {
            files::unusable(path)(error)
        }
        failure => files::damaged(path, failure.to_string()),
    }
}

impl Engine for Redb {}

impl Log for Redb {
    const NAME: &'static str = NAME;
    const PLACE: &'static str = "log.redb";
    const DATA: &'static str = "";

    type Bytes = Bytes;

    fn scan_from(
        &self,
        from: &[u8],
        mut each: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        const READING: &str = "reading the log";
        let damaged = |failure: Failure<_>| files::damaged(&self.path, failure.to_string());
        let begin = || -> Result<_, Fault> {
            let table = self.db()?.begin_read()?.open_table(RECORDS)?;
            Ok(table.range::<&[u8]>(from..)?)
        };
        let mut records = guarded(NAME, READING, begin).map_err(damaged)?;
        loop {
            let next = guarded(NAME, READING, || owned(records.next()));
            match next.map_err(damaged)? {
                Some((key, value)) => {
                    if each(&key, &value)?.is_break() {
                        return Ok(());
                    }
                }
                None => return Ok(()),
            }
        }
    }

    fn first_from(&self, from: &[u8]) -> Result<Option<Record<Bytes>>, StoreError> {
        self.guarded("reading the log", || {
            let table = self.db()?.begin_read()?.open_table(RECORDS)?;
            owned(table.range(from..)?.next())
        })
    }

    fn insert(&self, key: &[u8], value: Vec<u8>) -> Result<(), StoreError> {
        self.write("writing the log", |records| {
            records.insert(key, value.as_slice())?;
            Ok(())
        })
    }

    fn remove(&self, key: &[u8]) -> Result<(), StoreError> {
        self.write("taking a record out of the log", |records| {
            records.remove(key)?;
            Ok(())
        })
    }

    fn harden(&self) -> Result<(), StoreError> {
        if self.transaction().is_none() {
            return Ok(());
        }
        match self.durability {
            Durability::Power => self.commit(redb::Durability::Immediate),
            Durability::Process | Durability::None => self.commit(redb::Durability::Eventual),
        }
    }

    fn sync(&self) -> Result<(), StoreError> {
        // What was hardened with `Power` has been synced. With less, an empty commit does it.
        if self.durability == Durability::Power {
            return self.harden();
        }
        self.commit(redb::Durability::Immediate)
    }
}

type Guard<'a> = redb::AccessGuard<'a, &'static [u8]>;

/// A record's bytes: they are read here, under the guard, since a damaged page may panic.
fn owned(
    next: Option<Result<(Guard<'_>, Guard<'_>), StorageError>>,
) -> Result<Option<Record<Bytes>>, Fault> {
    let Some(record) = next else {
        return Ok(None);
    };
    let (key, value) = record?;
    Ok(Some((key.value().to_vec(), value.value().to_vec())))
}
