//! What of a run is kept in memory, and how it lies behind the run's blocks.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use super::filter::Filter;

const MAGIC: [u8; 8] = *b"ic-run\x00\x01";
const FOOTER_BYTES: usize = 44;
/// More than a shard's filter and directory take, whatever a damaged length says.
const SHARD_BYTES_MAX: u32 = 1 << 28;
const SHARD_BITS_MAX: u32 = 20;

/// One part of a run: the keys that share their top bits.
pub(super) struct Shard {
    pub(super) first_block: u32,
    /// The first key of each block, by its top half.
    pub(super) firsts: Box<[u64]>,
    pub(super) filter: Filter,
}

/// By the top bits of their keys; `None` where there is none, or none yet, or none any more.
pub(super) type Shards = Box<[Option<Arc<Shard>>]>;

impl Shard {
    /// The blocks that may hold a key: mostly one.
    pub(super) fn blocks(&self, top: u64) -> impl Iterator<Item = u32> {
        let behind = self.firsts.partition_point(|first| *first < top);
        let to = self.firsts.partition_point(|first| *first <= top);
        // Equal halves may begin in the block before.
        let from = behind.saturating_sub(1);
        (self.first_block..).skip(from).take(to - from.min(to))
    }

    /// Length, checksum, and what they speak of.
    pub(super) fn encode(&self, run: u64, at: u32) -> Vec<u8> {
        let (descriptor, filter) = self.filter.parts();
        let blocks = u32::try_from(self.firsts.len()).unwrap_or(u32::MAX);
        let mut body = Vec::with_capacity(self.firsts.len() * 8 + filter.len() + 64);
        for number in [at, self.first_block, blocks] {
            body.extend_from_slice(&number.to_le_bytes());
        }
        body.extend_from_slice(descriptor);
        for first in &self.firsts {
            body.extend_from_slice(&first.to_le_bytes());
        }
        body.extend_from_slice(filter);
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let mut out = Vec::with_capacity(body.len() + 8);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&checksum(run, &body).to_le_bytes());
        out.append(&mut body);
        out
    }

    fn decode(body: &[u8]) -> Option<(usize, Self)> {
        let (head, body) = body.split_first_chunk::<12>()?;
        let (descriptor, body) = body.split_first_chunk::<20>()?;
        let blocks = usize::try_from(u32_at(head, 8)?).ok()?;
        let (firsts, filter) = body.split_at_checked(blocks.checked_mul(8)?)?;
        let firsts = firsts.chunks_exact(8).map(|first| {
            first
                .first_chunk()
                .map_or(0, |bytes| u64::from_le_bytes(*bytes))
        });
        let shard = Self {
            first_block: u32_at(head, 4)?,
            firsts: firsts.collect(),
            filter: Filter::from_parts(descriptor, filter)?,
        };
        Some((usize::try_from(u32_at(head, 0)?).ok()?, shard))
    }
}

fn checksum(run: u64, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&run.to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The end of a run's file: without it the run was not written whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) run: u64,
    pub(super) keys: u64,
    /// Where the shards begin.
    pub(super) shards_at: u64,
    pub(super) shards: u32,
    pub(super) shard_bits: u32,
}

impl Footer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        for number in [self.run, self.keys, self.shards_at] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.shards, self.shard_bits] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&crc32fast::hash(&out).to_le_bytes());
        out
    }

    fn decode(bytes: &[u8; FOOTER_BYTES]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk()?;
        if u32::from_le_bytes(*sum) != crc32fast::hash(body) || !body.starts_with(&MAGIC) {
            return None;
        }
        let footer = Self {
            run: u64_at(body, 8)?,
            keys: u64_at(body, 16)?,
            shards_at: u64_at(body, 24)?,
            shards: u32_at(body, 32)?,
            shard_bits: u32_at(body, 36)?,
        };
        (footer.shard_bits <= SHARD_BITS_MAX).then_some(footer)
    }
}

/// How many keys a run has, how many top bits choose a shard, and the shards. `None` where they are
/// not what was written there.
pub(super) fn read(run: u64, file: &File) -> io::Result<Option<(u64, u32, Shards)>> {
    let length = file.metadata()?.len();
    let Some(footer_at) = length.checked_sub(FOOTER_BYTES as u64) else {
        return Ok(None);
    };
    let mut footer = [0; FOOTER_BYTES];
    file.read_exact_at(&mut footer, footer_at)?;
    let Some(footer) = Footer::decode(&footer).filter(|footer| footer.run == run) else {
        return Ok(None);
    };
    let mut reader = BufReader::with_capacity(1 << 16, file);
    reader.seek(SeekFrom::Start(footer.shards_at))?;
    let mut shards: Vec<Option<Arc<Shard>>> = vec![None; 1 << footer.shard_bits];
    for _ in 0..footer.shards {
        let Some((at, shard)) = read_shard(run, &mut reader)? else {
            return Ok(None);
        };
        match shards.get_mut(at) {
            Some(place) => *place = Some(Arc::new(shard)),
            None => return Ok(None),
        }
    }
    Ok(Some((footer.keys, footer.shard_bits, shards.into())))
}

fn read_shard(run: u64, from: &mut impl Read) -> io::Result<Option<(usize, Shard)>> {
    let mut head = [0; 8];
    from.read_exact(&mut head)?;
    let (Some(length), Some(sum)) = (u32_at(&head, 0), u32_at(&head, 4)) else {
        return Ok(None);
    };
    if length > SHARD_BYTES_MAX {
        return Ok(None);
    }
    let mut body = vec![0; length as usize];
    from.read_exact(&mut body)?;
    if sum != checksum(run, &body) {
        return Ok(None);
    }
    Ok(Shard::decode(&body))
}
