//! Each order once, however often it comes.
//!
//! The store comes before the file, see [`journal`](crate::journal): a crash between the two
//! leaves an order that is recorded and not appended, and the next start appends it.

use std::{fs::File, io, path::Path, time::Duration};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use crate::{
    error::Error,
    journal::{FILE, Journal},
    processed::Processed,
    run::until_death,
};

/// The owner in the store's stamp.
const PROGRAM: &str = "ship-process";

/// Opens the store and brings the processed file to the length that it knows.
pub(crate) fn open(processed: &Processed, state: &Path) -> Result<Journal, Error> {
    let file = regular(processed)?;
    // The store's own lock does not keep away whoever uses another one for the same file.
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            return Err(Error::Locked {
                path: processed.path().to_path_buf(),
            });
        }
        Err(error) => {
            return Err(Error::Open {
                path: processed.path().to_path_buf(),
                source: io::Error::from(error),
            });
        }
    }
    let mut journal = Journal::open(state, PROGRAM, FILE, Duration::ZERO)?;
    journal.catch_up(file, processed.path())?;
    Ok(journal)
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
    journal.claim(orders, |order| new.extend_from_slice(order))?;
    let (safe, died) = if fixed {
        (new.len(), None)
    } else {
        until_death(&new)
    };
    new.truncate(safe);
    if !new.is_empty() {
        journal.record(&new)?;
        journal.append(regular(processed)?, processed.path(), &new)?;
    }
    if let Some(processed) = died {
        // As a crash would: the store is not left in order.
        return Err(Error::Died { processed });
    }
    Ok(journal.finish()?)
}

fn regular(processed: &Processed) -> Result<&File, Error> {
    processed.regular().ok_or_else(|| Error::NotAFile {
        path: processed.path().to_path_buf(),
    })
}
