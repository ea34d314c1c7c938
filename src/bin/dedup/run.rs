//! The filter: read, decide, commit in batches.

use std::time::Instant;

#[cfg(any(feature = "sled", feature = "redb"))]
use crate::stored::{self, Stored};
use crate::{
    args::{Config, Store},
    chunk::{Chunk, Chunks, Preparation},
    error::Error,
    index::Hasher,
    output::{self, Output},
    plain::Plain,
    progress::Progress,
    seen::{self, Seen},
    stats::{Counts, Summary},
    stdin::Stdin,
};

/// From how much on a durable point is made, though more input is ready. With the read that
/// reaches it that is at most 4 MiB and one line, which is what a stop may repeat. Two syncs of
/// the disk, a few milliseconds, are little beside the time that so much takes.
pub(crate) const BATCH_BYTES: usize = 3 << 20;

/// What was seen, and where new lines go.
pub(crate) trait State {
    /// Appends the lines of a chunk to `new` that were not seen, and returns their number. They
    /// are taken for seen from here on, so that a copy in the same batch is none; that is in
    /// memory only, until [`State::commit`].
    fn claim(&mut self, chunk: &Chunk, new: &mut Vec<u8>) -> Result<u64, Error>;

    /// Hands over whole lines that were claimed, in order, and records them as seen. When it
    /// returns, that is done or under way for these, and both are as durable as the target can
    /// be for all before. What is left in `lines` means nothing. After an error the state must
    /// not be used again: what it holds in memory and what is recorded are no longer the same.
    fn commit(&mut self, lines: &mut Vec<u8>) -> Result<(), Error>;

    /// Waits until nothing is under way.
    fn settle(&mut self) -> Result<(), Error>;

    /// Ends the work in order. Nothing is lost where this is not reached.
    fn finish(self) -> Result<(), Error>;
}

/// Opens the state and filters standard input until its end.
///
/// # Errors
/// The first thing that fails. What was handed over until then is recorded as seen.
pub(crate) fn run(config: &Config) -> Result<Summary, Error> {
    let started = Instant::now();
    let stdin = Stdin::open().map_err(Error::Input)?;
    let progress = Progress::new(config.progress, stdin.length());
    let counts = match config.store {
        Store::Text => {
            // Both before either is made.
            seen::check(&config.seen)?;
            output::check(&config.out, &stdin)?;
            let hasher = Hasher::new().map_err(Error::Random)?;
            let seen = Seen::open(&config.seen, config.format.clone(), config.wait)?;
            let out = Output::open(&config.out, config.format.terminator)?;
            let state = Plain::open(
                seen,
                out,
                config.format.clone(),
                hasher.clone(),
                config.wait,
            )?;
            filter(read(config, stdin, Some(hasher))?, state, progress)?
        }
        #[cfg(feature = "sled")]
        Store::Sled => {
            let state = Stored::open(config, stored::sled, &stdin)?;
            filter(read(config, stdin, None)?, state, progress)?
        }
        #[cfg(feature = "redb")]
        Store::Redb => {
            let state = Stored::open(config, stored::redb, &stdin)?;
            filter(read(config, stdin, None)?, state, progress)?
        }
    };
    Ok(Summary::new(counts, started))
}

/// Starts to read the lines. A store makes its fingerprints itself, under its own key.
fn read(config: &Config, stdin: Stdin, hasher: Option<Hasher>) -> Result<Chunks, Error> {
    let preparation = Preparation {
        format: config.format.clone(),
        hasher,
        key_required: config.key_required,
    };
    Chunks::read(stdin, preparation, Error::Input)
}

fn filter(
    mut chunks: Chunks,
    mut state: impl State,
    mut progress: Progress,
) -> Result<Counts, Error> {
    let mut counts = Counts::default();
    let mut batch = Vec::new();
    loop {
        let next = chunks.next();
        let mut quiet = true;
        if let Ok(Some(chunk)) = &next {
            counts.lines += chunk.ends().len() as u64;
            counts.bytes_read += chunk.bytes().len() as u64;
            counts.without_key += chunk.without_key();
            counts.new += state.claim(chunk, &mut batch)?;
            quiet = chunk.is_quiet();
        }
        // A producer that pauses gets its lines through now; one that does not fills the batch.
        // What was read before a failure or the end is handled in either case.
        if batch.len() >= BATCH_BYTES || (quiet && !batch.is_empty()) {
            counts.bytes_written += batch.len() as u64;
            state.commit(&mut batch)?;
            batch.clear();
            batch.shrink_to(2 * BATCH_BYTES);
        }
        if quiet {
            state.settle()?;
        }
        progress.tick(&counts);
        let Some(chunk) = next? else {
            state.finish()?;
            return Ok(counts);
        };
        chunks.recycle(chunk);
    }
}
