//! Each order once, however often it comes.
//!
//! The store comes before the file, see [`crate::journal`]: a crash between the two
//! leaves an order that is recorded and not appended, and the next start appends it.

use std::{fs::File, io, path::Path, sync::Arc, time::Duration};

use idempotent_consumer::store::SledStore;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use crate::{
    error::Error,
    journal::{self, FILE, Journal, Line, Program, refuse_without_store},
    place,
    processed::{PROCESSED_NAMES, Processed},
    run::until_death,
};

/// The owner in the store's stamp.
const PROGRAM: Program = Program {
    name: "ship-process",
    when_in_use: "let it finish",
    open: |directory| Ok(Arc::new(SledStore::open(directory)?)),
};

/// Opens the store and brings the processed file to the length that it knows.
pub(crate) fn open(path: &Path, state: &Path) -> Result<(Processed, Journal), Error> {
    place::store(state, "--state", "is no directory; --state takes one")?;
    let (processed, mut journal) = if let Some(there) = place::file(path, PROCESSED_NAMES)? {
        if !there.is_file() {
            return Err(not_a_file(path));
        }
        let processed = open_locked(path)?;
        refuse_without_store(regular(&processed)?, path, state)?;
        (processed, open_journal(state)?)
    } else {
        // A store that refuses must not leave a new, empty file behind.
        let journal = open_journal(state)?;
        (open_locked(path)?, journal)
    };
    journal.catch_up(regular(&processed)?, path)?;
    Ok((processed, journal))
}

fn open_journal(state: &Path) -> Result<Journal, Error> {
    Ok(Journal::open(state, PROGRAM, "line", FILE, Duration::ZERO)?)
}

fn open_locked(path: &Path) -> Result<Processed, Error> {
    let processed = Processed::open(path)?;
    // The store's own lock does not keep away whoever uses another one for the same file.
    match flock(
        regular(&processed)?,
        FlockOperation::NonBlockingLockExclusive,
    ) {
        Ok(()) => Ok(processed),
        Err(Errno::WOULDBLOCK) => Err(Error::Locked {
            path: path.to_path_buf(),
        }),
        Err(error) => Err(Error::Open {
            path: path.to_path_buf(),
            source: io::Error::from(error),
        }),
    }
}

/// Processes the orders that were not processed before.
///
/// # Errors
/// [`Error::Died`] at a new `order-2` with the bug in place; what comes before it is then in the
/// store and in the file.
pub(crate) fn process(
    processed: &Processed,
    mut journal: Journal,
    orders: &[u8],
    fixed: bool,
) -> Result<(), Error> {
    let mut new = Vec::new();
    journal.claim(lines(orders), |order| new.extend_from_slice(order))?;
    let (safe, died) = if fixed {
        (new.len(), None)
    } else {
        until_death(&new)
    };
    new.truncate(safe);
    if !new.is_empty() {
        journal.record(lines(&new))?;
        journal.append(regular(processed)?, processed.path(), &new)?;
    }
    if let Some(processed) = died {
        // As a crash would: the store is not left in order.
        return Err(Error::Died { processed });
    }
    Ok(journal.finish()?)
}

fn lines(orders: &[u8]) -> impl Iterator<Item = Line<'_>> {
    journal::lines(orders, b'\n', |order| Some(order.into()))
}

fn regular(processed: &Processed) -> Result<&File, Error> {
    processed
        .regular()
        .ok_or_else(|| not_a_file(processed.path()))
}

fn not_a_file(path: &Path) -> Error {
    Error::NotAFile {
        path: path.to_path_buf(),
    }
}
