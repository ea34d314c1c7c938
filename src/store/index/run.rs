//! A run: keys of a stretch of the log, in the order of their fingerprints, in a file of its own.
//!
//! What is in memory of it is a filter and the first key of each block; the rest is read where a
//! key may be there. The layout is in docs/design.md.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::block::{self, BLOCK_BYTES, Block, Number};
use super::known::{Known, halves};
use super::parts::{self, Shards};
use crate::key::Fingerprint;
use crate::store::StoreError;
use crate::store::directory::files;

const READING: &str = "reading a run of the index";

/// A run's file.
pub(super) struct RunFile {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    pub(super) file: File,
}

impl RunFile {
    /// Reads a block and looks whether it is the one that was written.
    fn block<'a>(&self, at: u32, buffer: &'a mut block::Buffer) -> Result<Block<'a>, StoreError> {
        let number = Number {
            run: self.number,
            block: at,
        };
        let bytes = &mut buffer[..BLOCK_BYTES];
        match self
            .file
            .read_exact_at(bytes, u64::from(at) * BLOCK_BYTES as u64)
        {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(self.damaged(format!("it ends before block {at}")));
            }
            // What the device cannot give back any more can be made anew all the same.
            Err(error) => return Err(self.damaged(format!("block {at} cannot be read: {error}"))),
        }
        Block::new(number, buffer)
            .ok_or_else(|| self.damaged(format!("block {at} is not what was written there")))
    }

    fn damaged(&self, what: impl std::fmt::Display) -> StoreError {
        StoreError::IndexDamaged {
            path: self.path.clone(),
            what: what.to_string(),
        }
    }
}

/// A run as look-ups see it. One that is being merged away loses its shards, from the first on, as
/// the new one gains them.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) file: Arc<RunFile>,
    pub(super) keys: u64,
    pub(super) shard_bits: u32,
    pub(super) shards: Shards,
}

/// Which of `2^bits` shards a key belongs to.
pub(super) fn shard_of(top: u64, bits: u32) -> usize {
    let shard = top.checked_shr(u64::BITS - bits).unwrap_or(0);
    usize::try_from(shard).unwrap_or(usize::MAX)
}

impl Run {
    /// Whether a key may be in it. `false` is certain.
    pub(super) fn may_hold(&self, top: u64) -> bool {
        let shard = self.shards.get(shard_of(top, self.shard_bits));
        shard.is_some_and(|shard| shard.as_ref().is_some_and(|one| one.filter.may_hold(top)))
    }

    /// What is known of a key.
    pub(super) fn find(&self, key: &Fingerprint) -> Result<Option<Known>, StoreError> {
        let halves = halves(key);
        let shard = self.shards.get(shard_of(halves.0, self.shard_bits));
        let Some(shard) = shard.and_then(Option::as_ref) else {
            return Ok(None);
        };
        let mut buffer = block::EMPTY;
        for at in shard.blocks(halves.0) {
            if let Some(known) = self.file.block(at, &mut buffer)?.find(halves) {
                return Ok(Some(known));
            }
        }
        Ok(None)
    }

    /// How many blocks it has.
    fn blocks(&self) -> u32 {
        let ends = self.shards.iter().flatten().map(|shard| {
            let blocks = u32::try_from(shard.firsts.len()).unwrap_or(u32::MAX);
            shard.first_block.saturating_add(blocks)
        });
        ends.max().unwrap_or(0)
    }

    /// All entries in order.
    pub(super) fn cursor(&self) -> Cursor {
        Cursor {
            file: Arc::clone(&self.file),
            next_block: 0,
            blocks: self.blocks(),
            entries: Vec::new(),
            at: 0,
        }
    }

    /// Opens a run that was written whole, and reads what is kept in memory of it.
    pub(super) fn open(number: u64, path: &Path) -> Result<Self, StoreError> {
        let file = File::open(path).map_err(files::unusable(path))?;
        let file = RunFile {
            number,
            path: path.to_owned(),
            file,
        };
        let read = match parts::read(number, &file.file) {
            Ok(Some(read)) => read,
            Ok(None) => return Err(file.damaged("its filters are not what was written there")),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(file.damaged("it ends too early"));
            }
            Err(error) => return Err(files::failed(path, READING)(error)),
        };
        let (keys, shard_bits, shards) = read;
        Ok(Self {
            file: Arc::new(file),
            keys,
            shard_bits,
            shards,
        })
    }
}

/// Reads a run's entries from the first to the last, a stretch of blocks at a time.
pub(super) struct Cursor {
    file: Arc<RunFile>,
    next_block: u32,
    blocks: u32,
    entries: Vec<Known>,
    at: usize,
}

/// Read at once: the system reads ahead by itself.
const BLOCKS_AT_ONCE: u32 = 16;

impl Cursor {
    /// The entry that it stands at; `None` behind the last.
    pub(super) fn entry(&self) -> Option<&Known> {
        self.entries.get(self.at)
    }

    /// Goes to the next entry, or to the first.
    pub(super) fn advance(&mut self) -> Result<(), StoreError> {
        self.at += 1;
        if self.at < self.entries.len() {
            return Ok(());
        }
        self.at = 0;
        self.entries.clear();
        let to = self
            .blocks
            .min(self.next_block.saturating_add(BLOCKS_AT_ONCE));
        let mut buffer = block::EMPTY;
        for at in self.next_block..to {
            self.file.block(at, &mut buffer)?.unpack(&mut self.entries);
        }
        self.next_block = to;
        Ok(())
    }
}
