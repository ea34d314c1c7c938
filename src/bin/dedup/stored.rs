//! The state as a store of the library's, which also holds the lines themselves.
//!
//! A regular file is kept in step with the store, which comes first: see [`journal`]. A stream
//! cannot be looked at again, and a redirected standard output is another file at each call. So
//! they come first, as with the text files, and the store gets the keys alone: what was handed
//! over and not recorded at a stop comes once more.
//!
//! [`journal`]: crate::journal

use std::{path::Path, sync::Arc};

#[cfg(feature = "redb")]
use idempotent_consumer::store::RedbStore;
#[cfg(feature = "sled")]
use idempotent_consumer::store::SledStore;
use idempotent_consumer::store::{Store, StoreError};

use crate::{
    args::Config,
    chunk::Chunk,
    error::Error,
    format::Format,
    journal::{self, Book, Journal, Line, Open, Program},
    output::{self, Output},
    place,
    run::State,
    say,
    stdin::Stdin,
};

const NOT_A_STORE: &str = "is a text file of marks: leave out --store";

/// The lines of every stream: there is no place that they could be missing from.
const STREAM: Book = Book {
    number: 1,
    keeps_lines: false,
};

/// A store in sled.
#[cfg(feature = "sled")]
pub(crate) fn sled(directory: &Path) -> Result<Arc<dyn Store>, StoreError> {
    Ok(Arc::new(SledStore::open(directory)?))
}

/// A store in redb.
#[cfg(feature = "redb")]
pub(crate) fn redb(directory: &Path) -> Result<Arc<dyn Store>, StoreError> {
    Ok(Arc::new(RedbStore::open(directory)?))
}

pub(crate) struct Stored {
    journal: Journal,
    out: Output,
    format: Format,
}

impl Stored {
    /// Opens the store and brings the out file to the length that it knows.
    pub(crate) fn open(config: &Config, kind: Open, stdin: &Stdin) -> Result<Self, Error> {
        let program = Program {
            name: "dedup",
            when_in_use: "let it finish, or use --wait SECONDS",
            open: kind,
        };
        let format = config.format.clone();
        let recipe = format.name();
        place::store(&config.seen, "--seen or DEDUP_SEEN", NOT_A_STORE)?;
        let (out, mut journal) = if output::check(&config.out, stdin)? {
            let out = open_out(config)?;
            if let Some(file) = out.kept() {
                journal::refuse_without_store(file, out.path(), &config.seen)?;
            }
            let book = out.kept().map_or(STREAM, |_| journal::FILE);
            let journal = Journal::open(&config.seen, program, &recipe, book, config.wait)?;
            (out, journal)
        } else {
            // A store that refuses must not leave a new, empty out file behind.
            let journal =
                Journal::open(&config.seen, program, &recipe, journal::FILE, config.wait)?;
            let out = open_out(config)?;
            if out.kept().is_none() {
                return Err(Error::Refused {
                    path: config.out.clone(),
                    reason: "it was missing, and somebody made it anew just now; start again",
                });
            }
            (out, journal)
        };
        if let Some(file) = out.kept() {
            let missing = journal.catch_up(file, out.path())?;
            if missing > 0 {
                say(&format!(
                    "{}: {missing} bytes that the store holds were missing at its end and were \
                     written",
                    out.path().display()
                ));
            }
        }
        Ok(Self {
            journal,
            out,
            format,
        })
    }
}

fn open_out(config: &Config) -> Result<Output, Error> {
    let out = Output::open(&config.out, config.format.terminator)?;
    out.lock(config.wait)?;
    Ok(out)
}

impl State for Stored {
    fn claim(&mut self, chunk: &Chunk, new: &mut Vec<u8>) -> Result<u64, Error> {
        let mut count = 0;
        let lines = keyed(&self.format, chunk.bytes());
        self.journal.claim(lines, |line| {
            new.extend_from_slice(line);
            count += 1;
        })?;
        Ok(count)
    }

    fn commit(&mut self, lines: &mut Vec<u8>) -> Result<(), Error> {
        if let Some(file) = self.out.kept() {
            // IMPORTANT: store before out. What the store knows the file gets at the next start;
            // what the file held beyond the store would be taken for somebody else's.
            self.journal.record(keyed(&self.format, lines))?;
            self.journal.append(file, self.out.path(), lines)?;
            return Ok(());
        }
        let mut lines = &lines[..];
        while !lines.is_empty() {
            let (part, rest) = lines.split_at(self.out.part(lines));
            // The other way round, for the same reason as with the text files.
            let appended = self.out.append(part);
            let whole = appended
                .as_ref()
                .map_or_else(|torn| torn.whole, |()| part.len());
            self.journal.record(keyed(&self.format, &part[..whole]))?;
            appended.map_err(|torn| self.out.failure(torn.source))?;
            lines = rest;
        }
        Ok(())
    }

    /// Nothing ever is under way.
    fn settle(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn finish(self) -> Result<(), Error> {
        Ok(self.journal.finish()?)
    }
}

/// The lines of a block with their keys as they are in the store: those that are parts of a line
/// behind a letter, which keeps them apart from those of lines that have none.
fn keyed<'a>(format: &'a Format, block: &'a [u8]) -> impl Iterator<Item = Line<'a>> {
    journal::lines(block, format.terminator, |line| {
        if format.recipe.is_line() {
            return Some(line.into());
        }
        let key = format.recipe.key(line).ok()?;
        Some([b"k", &key[..]].concat().into())
    })
}
