//! The filter: read, decide, commit in batches.

use std::{fmt, time::Instant};

#[cfg(any(feature = "sled", feature = "redb"))]
use crate::stored::{self, Stored};
use crate::{
    args::{Config, Store},
    error::Error,
    lines::Lines,
    output::{self, Output},
    plain::Plain,
    seen::{self, Seen},
    stdin::Stdin,
};

/// From how much on a durable point is made, though more input is ready. With the read that
/// reaches it that is at most 4 MiB and one line, which is what a stop may repeat. Two syncs of
/// the disk, a few milliseconds, are little beside the time that so much takes.
pub(crate) const BATCH_BYTES: usize = 3 << 20;

/// What was seen, and where new lines go.
pub(crate) trait State {
    /// Appends the lines of a block to `new` that were not seen, and returns their number. They
    /// are taken for seen from here on, so that a copy in the same batch is none; that is in
    /// memory only, until [`State::commit`].
    fn claim(&mut self, block: &[u8], new: &mut Vec<u8>) -> Result<u64, Error>;

    /// Hands over whole lines that were claimed, in order, and records them as seen. When it
    /// returns, both are as durable as the target can be. After an error the state must not be
    /// used again: what it holds in memory and what is recorded are no longer the same.
    fn commit(&mut self, lines: &[u8]) -> Result<(), Error>;

    /// Ends the work in order. Nothing is lost where this is not reached.
    fn finish(self) -> Result<(), Error>;
}

/// What a run did.
pub(crate) struct Summary {
    read: u64,
    written: u64,
    started: Instant,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            read,
            written,
            started,
        } = self;
        let duplicates = read - written;
        let seconds = started.elapsed().as_secs_f64();
        write!(
            f,
            "{read} lines read, {written} written, {duplicates} duplicates, {seconds:.3} seconds"
        )
    }
}

/// Opens the state and filters standard input until its end.
///
/// # Errors
/// The first thing that fails. What was handed over until then is recorded as seen.
pub(crate) fn run(config: &Config) -> Result<Summary, Error> {
    let started = Instant::now();
    let stdin = Stdin::open().map_err(Error::Input)?;
    let (read, written) = match config.store {
        Store::Text => {
            // Both before either is made.
            seen::check(&config.seen)?;
            output::check(&config.out, &stdin)?;
            let seen = Seen::open(&config.seen, config.wait)?;
            let out = Output::open(&config.out)?;
            let state = Plain::open(seen, out, config.wait)?;
            filter(stdin, state)?
        }
        #[cfg(feature = "sled")]
        Store::Sled => {
            let state = Stored::open(config, stored::sled, &stdin)?;
            filter(stdin, state)?
        }
        #[cfg(feature = "redb")]
        Store::Redb => {
            let state = Stored::open(config, stored::redb, &stdin)?;
            filter(stdin, state)?
        }
    };
    Ok(Summary {
        read,
        written,
        started,
    })
}

fn filter(stdin: Stdin, mut state: impl State) -> Result<(u64, u64), Error> {
    let (mut read, mut written) = (0, 0);
    let mut lines = Lines::new(stdin);
    let mut batch = Vec::new();
    loop {
        let filled = lines.fill();
        let block = lines.whole();
        read += count(block);
        written += state.claim(block, &mut batch)?;
        // A producer that pauses gets its lines through now; one that does not fills the batch.
        // What was read before a failure or the end is handled in either case.
        let more = matches!(filled, Ok(true));
        if !more || batch.len() >= BATCH_BYTES || !lines.source().ready().map_err(Error::Input)? {
            if !batch.is_empty() {
                state.commit(&batch)?;
            }
            batch.clear();
            batch.shrink_to(2 * BATCH_BYTES);
        }
        if !filled.map_err(Error::Input)? {
            state.finish()?;
            return Ok((read, written));
        }
    }
}

fn count(block: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', block).count() as u64
}
