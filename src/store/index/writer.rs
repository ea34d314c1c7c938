//! Writes a run, in the order of its keys.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use super::block::{BLOCK_BYTES, Number, Packer};
use super::filter::Filter;
use super::known::{Known, halves};
use super::parts::{Footer, Shard, Shards};
use super::run::{Run, RunFile, shard_of};
use crate::store::StoreError;
use crate::store::directory::files;

const WRITING: &str = "writing a run of the index";
/// Blocks written at once.
const BUFFER_BYTES: usize = 64 * BLOCK_BYTES;
/// What is left to the system to write at most: a commit's own sync may have to wait for it.
const UNSYNCED_BYTES_MAX: u64 = 1 << 20;

/// A run in the making.
pub(super) struct Writer {
    file: Arc<RunFile>,
    shard_bits: u32,
    packer: Packer,
    buffer: Vec<u8>,
    /// Written so far, and of that brought to the device.
    written_bytes: u64,
    synced_bytes: u64,
    blocks: u32,
    keys: u64,
    shards: Vec<Option<Arc<Shard>>>,
    /// Of the shard in the making.
    shard: usize,
    first_block: u32,
    firsts: Vec<u64>,
    tops: Vec<u64>,
    offsets_max: BTreeMap<u32, i64>,
}

/// What was written.
pub(super) struct Written {
    pub(super) run: Run,
    /// The highest offset of each partition in it, by the partition's number.
    pub(super) offsets_max: BTreeMap<u32, i64>,
}

/// How many top bits choose a shard, so that one holds about `shard_keys` keys at most.
fn shard_bits(keys: u64, shard_keys: u64) -> u32 {
    keys.div_ceil(shard_keys.max(1))
        .max(1)
        .next_power_of_two()
        .trailing_zeros()
        .min(16)
}

impl Writer {
    /// Begins the run of a number, of `keys` keys at most.
    pub(super) fn create(
        path: &Path,
        number: u64,
        keys: u64,
        shard_keys: u64,
    ) -> Result<Self, StoreError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
            .map_err(files::failed(path, WRITING))?;
        let shard_bits = shard_bits(keys, shard_keys);
        Ok(Self {
            file: Arc::new(RunFile {
                number,
                path: path.to_owned(),
                file,
            }),
            shard_bits,
            packer: Packer::default(),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            written_bytes: 0,
            synced_bytes: 0,
            blocks: 0,
            keys: 0,
            shards: vec![None; 1 << shard_bits],
            shard: 0,
            first_block: 0,
            firsts: Vec::new(),
            tops: Vec::new(),
            offsets_max: BTreeMap::new(),
        })
    }

    /// Takes the next key; says whether a shard was finished before it, so that there is more to
    /// [look up in](Writer::so_far).
    pub(super) fn push(&mut self, known: &Known) -> Result<bool, StoreError> {
        let (top, _) = halves(&known.fingerprint);
        let shard = shard_of(top, self.shard_bits);
        let finished = shard != self.shard;
        if finished {
            self.finish_shard()?;
            self.shard = shard;
        }
        if !self.packer.push(known) {
            self.finish_block()?;
            self.packer.push(known);
        }
        // Two keys may share a half; a filter takes it once.
        if self.tops.last() != Some(&top) {
            self.tops.push(top);
        }
        self.keys += 1;
        let offset_max = self.offsets_max.entry(known.id().0).or_insert(known.offset);
        *offset_max = known.offset.max(*offset_max);
        Ok(finished)
    }

    /// The run with the shards that are finished. Its keys are counted where they came from.
    pub(super) fn so_far(&self) -> Run {
        Run {
            file: Arc::clone(&self.file),
            keys: 0,
            shard_bits: self.shard_bits,
            shards: self.shards.clone().into(),
        }
    }

    /// All keys below were pushed and can be looked up: the number of shards that are finished.
    pub(super) fn finished_shards(&self) -> usize {
        self.shard
    }

    /// Gives the run up. What is left of it where that fails is removed at the next opening.
    pub(super) fn abandon(self) {
        let _ = remove(&self.file.path);
    }

    /// Ends the run; when this returns its file is on the device, and not its name yet.
    pub(super) fn finish(mut self) -> Result<Written, StoreError> {
        self.finish_shard()?;
        let footer = Footer {
            run: self.file.number,
            keys: self.keys,
            shards_at: self.written_bytes,
            shards: u32::try_from(self.shards.iter().flatten().count()).unwrap_or(u32::MAX),
            shard_bits: self.shard_bits,
        };
        for (at, shard) in (0..).zip(std::mem::take(&mut self.shards)) {
            if let Some(shard) = &shard {
                self.write(&shard.encode(self.file.number, at))?;
            }
            self.shards.push(shard);
        }
        self.write(&footer.encode())?;
        self.sync()?;
        let shards: Shards = std::mem::take(&mut self.shards).into();
        Ok(Written {
            run: Run {
                file: self.file,
                keys: self.keys,
                shard_bits: self.shard_bits,
                shards,
            },
            offsets_max: self.offsets_max,
        })
    }

    fn finish_block(&mut self) -> Result<(), StoreError> {
        let number = Number {
            run: self.file.number,
            block: self.blocks,
        };
        self.firsts.extend(self.packer.first_top());
        let Some(block) = self.packer.finish(number) else {
            return Ok(());
        };
        let full = StoreError::Misused("a run of the index with 2^32 blocks");
        self.blocks = self.blocks.checked_add(1).ok_or(full)?;
        self.buffer.extend_from_slice(&block);
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Makes what was pushed findable.
    fn finish_shard(&mut self) -> Result<(), StoreError> {
        self.finish_block()?;
        self.flush()?;
        let firsts = std::mem::take(&mut self.firsts);
        let first_block = std::mem::replace(&mut self.first_block, self.blocks);
        if !self.tops.is_empty() {
            let failed = files::failed(&self.file.path, "making a filter of the index");
            let filter = Filter::build(&self.tops).map_err(failed)?;
            self.tops.clear();
            let shard = Shard {
                first_block,
                firsts: firsts.into(),
                filter,
            };
            if let Some(place) = self.shards.get_mut(self.shard) {
                *place = Some(Arc::new(shard));
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer)?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let written = self.file.file.write_all_at(bytes, self.written_bytes);
        written.map_err(files::failed::<io::Error>(&self.file.path, WRITING))?;
        self.written_bytes += bytes.len() as u64;
        if self.written_bytes - self.synced_bytes >= UNSYNCED_BYTES_MAX {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        let synced = self.file.file.sync_data();
        synced.map_err(files::failed::<io::Error>(&self.file.path, WRITING))?;
        self.synced_bytes = self.written_bytes;
        Ok(())
    }
}

/// Removes a run's file, where there is one. It can still be read where it is open.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
