//! An append-only file of distinct lines, kept in step with a store: what `dedup --store sled` and
//! `ship-process --idempotent` have in common. It is written on the library's public face alone.
//!
//! # How a line gets into the file once
//!
//! A line's position in the store is its position in the file: the store's head is the length
//! that the file has, or is about to have. The store comes first: keys, the lines themselves and
//! the new length in one atomic, durable record. Then the file is appended to. So whatever stops
//! the program, the store knows every line that the file holds and every byte that it lacks, and
//! [`Journal::catch_up`] appends those: half a line is completed, none is lost, none comes twice.
//!
//! The file may lack any number of bytes at its end, also all. What it may not do is hold bytes
//! that the store knows nothing of, or others than the store recorded: then somebody else wrote
//! into it. Nothing of it is ever deleted or overwritten; the error says how to go on.
//!
//! # Lines longer than a record
//!
//! A store's record is bounded, a line is not. A longer line's pieces are recorded first, each in
//! a record of its own and on a tape of their own, where a stop in the middle leaves unused bytes
//! and nothing else. Then the line itself is, with the place of its pieces.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use idempotent_consumer::{
    engine::{Engine, Look},
    key::Scope,
    store::{Owner, Store, StoreError},
};

use self::tape::{Place, Record, Tape};
pub(crate) use self::{catch_up::refuse_without_store, error::Error};

mod catch_up;
mod error;
mod file;
mod tape;

/// A record is at most this long: four kilobytes below the library's bound for a unit that holds
/// one result of the largest size (48 KiB and 64 KiB), of which its head and its keys take a part.
const RECORD_BYTES_MAX: usize = 108 << 10;
/// The longest line that is recorded in one piece; the library's bound for a result.
const LINE_BYTES_MAX: usize = 64 << 10;
/// What a line takes in a record besides itself: fingerprint, digest, position, place, length.
const LINE_OVERHEAD_BYTES: usize = 16 + 8 + 10 + 8;

/// How many lines are looked up together: their waits for memory overlap.
const GROUP_LINES: usize = 512;

/// How the keys begin that lines without one are recorded under. Keys of the caller's begin
/// otherwise wherever such lines can be.
const NO_KEY: &[u8] = b"n";

const PIECES: Place = Place::new("pieces", 0);
const RETRY: Duration = Duration::from_millis(20);

/// Who uses the store.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    /// The owner in the store's stamp.
    pub(crate) name: &'static str,
    /// What to do when another process has the store.
    pub(crate) when_in_use: &'static str,
    /// What the store is kept in.
    pub(crate) open: Open,
}

/// Opens the store in a directory, or makes a new one.
pub(crate) type Open = fn(&Path) -> Result<Arc<dyn Store>, StoreError>;

/// Which lines of a store are meant. All share their keys: a line that was handed over in one way
/// is not handed over in another.
#[derive(Clone, Copy)]
pub(crate) struct Book {
    /// Where positions are counted.
    pub(crate) number: i32,
    /// Whether the lines are recorded, to be read back, or their keys alone.
    pub(crate) keeps_lines: bool,
}

/// A line with its terminator, and what makes it another's copy.
pub(crate) struct Line<'a> {
    pub(crate) bytes: &'a [u8],
    /// `None` where nothing does: it is new each time.
    pub(crate) key: Option<Cow<'a, [u8]>>,
}

/// The lines of one regular file.
pub(crate) const FILE: Book = Book {
    number: 0,
    keeps_lines: true,
};

/// What was seen, on disk, and with the book of a file also what belongs in it.
pub(crate) struct Journal {
    engine: Engine,
    lines: Tape,
    /// Taken only when there is a line that needs it.
    pieces: Option<Tape>,
    /// What the record under way has grown to.
    record_bytes: usize,
    keeps_lines: bool,
    directory: PathBuf,
}

impl Journal {
    /// Opens the store at `directory`, or makes a new one, and waits up to `wait` for another
    /// process that has it open. `recipe` names what keys are made of.
    ///
    /// # Errors
    /// Where the store refuses: in use, damaged, or filled by another program or recipe.
    pub(crate) fn open(
        directory: &Path,
        program: Program,
        recipe: &str,
        book: Book,
        wait: Duration,
    ) -> Result<Self, Error> {
        let translate = |error| Error::of_store(error, program);
        let store = open_store(program.open, directory, wait).map_err(translate)?;
        let owner = Owner {
            group: program.name.to_owned(),
            recipe: recipe.to_owned(),
            scope: "topic".to_owned(),
        };
        let engine = Engine::new(store, &owner, Scope::Topic).map_err(translate)?;
        let lines = Tape::take(&engine, Place::new("lines", book.number))?;
        Ok(Self {
            engine,
            lines,
            pieces: None,
            record_bytes: 0,
            keeps_lines: book.keeps_lines,
            directory: directory.to_path_buf(),
        })
    }

    /// Gives the bytes of lines to `new`, in order, that were not seen. They are taken for seen
    /// from here on, in memory only, until they are [recorded](Journal::record).
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub(crate) fn claim<'a>(
        &self,
        mut lines: impl Iterator<Item = Line<'a>>,
        mut new: impl FnMut(&[u8]),
    ) -> Result<(), Error> {
        let (mut group, mut looks) = (Vec::new(), Vec::new());
        loop {
            group.clear();
            group.extend(lines.by_ref().take(GROUP_LINES));
            if group.is_empty() {
                return Ok(());
            }
            let keys = group.iter().filter_map(|line| line.key.as_deref());
            self.lines.look_all(keys, &mut looks)?;
            let mut looks = looks.iter();
            for line in &group {
                // The look of a line without a key is not asked for: there is none.
                if line.key.is_none() || looks.next() == Some(&Look::New) {
                    new(line.bytes);
                }
            }
        }
    }

    /// Records lines that were claimed, in order. When it returns they are durable.
    ///
    /// # Errors
    /// Where the store cannot be written: what was recorded until then stays, and the journal
    /// must not be used again.
    pub(crate) fn record<'a>(
        &mut self,
        lines: impl Iterator<Item = Line<'a>>,
    ) -> Result<(), Error> {
        for Line { bytes, key } in lines {
            // Its own place, which no other has, and no key begins like that.
            let key = key.unwrap_or_else(|| {
                let mut place = NO_KEY.to_vec();
                place.extend_from_slice(&self.lines.end().to_le_bytes());
                place.into()
            });
            if !self.keeps_lines {
                self.make_room(LINE_OVERHEAD_BYTES)?;
                self.lines.append(&key, None, bytes.len())?;
            } else if bytes.len() <= LINE_BYTES_MAX {
                self.make_room(LINE_OVERHEAD_BYTES + bytes.len())?;
                self.lines.append(&key, Some(bytes), bytes.len())?;
            } else {
                let place = self.record_pieces(bytes)?.to_le_bytes();
                self.make_room(LINE_OVERHEAD_BYTES + place.len())?;
                self.lines.append(&key, Some(&place), bytes.len())?;
            }
        }
        self.commit()
    }

    /// Ends the work in order.
    ///
    /// # Errors
    /// Where the store cannot be written; every line that was recorded is durable all the same.
    pub(crate) fn finish(self) -> Result<(), Error> {
        if let Some(pieces) = self.pieces {
            pieces.finish()?;
        }
        self.lines.finish()?;
        Ok(())
    }

    /// Records a long line in pieces and says where they begin on their tape.
    fn record_pieces(&mut self, line: &[u8]) -> Result<u64, Error> {
        // Not in one commit with the lines before: two tapes are not atomic together, and only
        // this order never leaves a line whose pieces are missing.
        self.commit()?;
        let start = self.pieces()?.end();
        for piece in line.chunks(LINE_BYTES_MAX) {
            let pieces = self.pieces()?;
            let key = pieces.end().to_le_bytes();
            pieces.append(&key, Some(piece), piece.len())?;
            self.engine.commit()?;
        }
        Ok(start)
    }

    fn piece_at(&mut self, position: u64) -> Result<Option<Record>, StoreError> {
        let engine = self.engine.clone();
        self.pieces()?.record_at(engine.store(), position)
    }

    fn pieces(&mut self) -> Result<&mut Tape, StoreError> {
        let tape = match self.pieces.take() {
            Some(tape) => tape,
            None => Tape::take(&self.engine, PIECES)?,
        };
        Ok(self.pieces.insert(tape))
    }

    fn make_room(&mut self, bytes: usize) -> Result<(), Error> {
        if self.record_bytes + bytes > RECORD_BYTES_MAX {
            self.commit()?;
        }
        self.record_bytes += bytes;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Error> {
        self.engine.commit()?;
        self.record_bytes = 0;
        Ok(())
    }
}

/// The lines of a block of whole ones; `key` is given each without its terminator.
pub(crate) fn lines<'a>(
    block: &'a [u8],
    terminator: u8,
    key: impl Fn(&'a [u8]) -> Option<Cow<'a, [u8]>>,
) -> impl Iterator<Item = Line<'a>> {
    let mut start = 0;
    memchr::memchr_iter(terminator, block).map(move |end| {
        let line = Line {
            bytes: &block[start..=end],
            key: key(&block[start..end]),
        };
        start = end + 1;
        line
    })
}

fn open_store(open: Open, directory: &Path, wait: Duration) -> Result<Arc<dyn Store>, StoreError> {
    let started = Instant::now();
    loop {
        match open(directory) {
            Err(StoreError::Locked { .. }) if started.elapsed() < wait => thread::sleep(RETRY),
            opened => return opened,
        }
    }
}
