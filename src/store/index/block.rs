//! A block of a run: neighbouring keys, packed to a page. The layout is in docs/design.md.
//!
//! Columns of numbers of one width each, as wide as the block's largest needs: a key costs about
//! 21 bytes, and one is found without decoding the others.

use super::bits::{self, Writer};
use super::known::{Known, halves};

pub(super) const BLOCK_BYTES: usize = 4096;
const HEAD_BYTES: usize = 30;
/// Behind a block in memory, so that the last number can be read like all others.
const SLACK_BYTES: usize = 16;
const DIGEST_BITS: u32 = 32;
const LOW_BITS: u32 = 64;

/// A block as it was read.
pub(super) type Buffer = [u8; BLOCK_BYTES + SLACK_BYTES];
pub(super) const EMPTY: Buffer = [0; BLOCK_BYTES + SLACK_BYTES];

/// Which block of which run this is: one in another's place is damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) run: u64,
    pub(super) block: u32,
}

/// What the entries of a block to be need.
#[derive(Clone, Copy)]
struct Extent {
    entries: usize,
    last_top: u64,
    delta_max: u64,
    offsets: (i64, i64),
    ids: (u32, u32),
    flagged: bool,
}

impl Extent {
    fn of(first: &Known) -> Self {
        let id = first.id().0;
        Self {
            entries: 1,
            last_top: halves(&first.fingerprint).0,
            delta_max: 0,
            offsets: (first.offset, first.offset),
            ids: (id, id),
            flagged: first.flags() != 0,
        }
    }

    fn with(self, next: &Known) -> Self {
        let top = halves(&next.fingerprint).0;
        let id = next.id().0;
        Self {
            entries: self.entries + 1,
            last_top: top,
            delta_max: self.delta_max.max(top.wrapping_sub(self.last_top)),
            offsets: (
                self.offsets.0.min(next.offset),
                self.offsets.1.max(next.offset),
            ),
            ids: (self.ids.0.min(id), self.ids.1.max(id)),
            flagged: self.flagged || next.flags() != 0,
        }
    }

    fn widths(&self) -> Widths {
        Widths {
            delta: bits::width(self.delta_max),
            offset: bits::width(distance(self.offsets.0, self.offsets.1)),
            id: bits::width(u64::from(self.ids.1 - self.ids.0)),
            flags: if self.flagged { 4 } else { 0 },
        }
    }

    fn fits(&self) -> bool {
        let bits = self.entries * self.widths().entry() as usize;
        HEAD_BYTES + bits.div_ceil(8) <= BLOCK_BYTES
    }
}

#[expect(clippy::cast_sign_loss, reason = "the difference of two, modulo 2^64")]
fn distance(low: i64, high: i64) -> u64 {
    high.wrapping_sub(low) as u64
}

#[derive(Clone, Copy)]
struct Widths {
    delta: u32,
    offset: u32,
    id: u32,
    flags: u32,
}

impl Widths {
    fn entry(&self) -> u32 {
        self.delta + LOW_BITS + self.offset + self.id + DIGEST_BITS + self.flags
    }
}

/// Gathers a block's entries.
#[derive(Default)]
pub(super) struct Packer {
    entries: Vec<Known>,
    extent: Option<Extent>,
}

impl Packer {
    /// Takes an entry behind those before it; `false` where the block is full.
    pub(super) fn push(&mut self, entry: &Known) -> bool {
        let extent = match self.extent {
            None => Extent::of(entry),
            Some(extent) => extent.with(entry),
        };
        // One always fits.
        if !extent.fits() {
            return false;
        }
        self.extent = Some(extent);
        self.entries.push(*entry);
        true
    }

    /// The first entry's half by which blocks are found.
    pub(super) fn first_top(&self) -> Option<u64> {
        self.entries.first().map(|one| halves(&one.fingerprint).0)
    }

    /// Writes the block and begins another. `None` where there is nothing in it.
    pub(super) fn finish(&mut self, number: Number) -> Option<[u8; BLOCK_BYTES]> {
        let extent = self.extent.take()?;
        let bytes = encode(number, &extent, &self.entries);
        self.entries.clear();
        Some(bytes)
    }
}

fn encode(number: Number, extent: &Extent, entries: &[Known]) -> [u8; BLOCK_BYTES] {
    let widths = extent.widths();
    let first_top = entries.first().map_or(0, |one| halves(&one.fingerprint).0);
    let mut out = Vec::with_capacity(BLOCK_BYTES);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(
        &u16::try_from(entries.len())
            .unwrap_or(u16::MAX)
            .to_le_bytes(),
    );
    for width in [widths.delta, widths.offset, widths.id, widths.flags] {
        out.push(u8::try_from(width).unwrap_or(u8::MAX));
    }
    out.extend_from_slice(&first_top.to_le_bytes());
    out.extend_from_slice(&extent.offsets.0.to_le_bytes());
    out.extend_from_slice(&extent.ids.0.to_le_bytes());
    let mut out = Writer::behind(out);
    let mut last = first_top;
    for entry in entries {
        let (top, _) = halves(&entry.fingerprint);
        out.push(top.wrapping_sub(last), widths.delta);
        last = top;
    }
    for entry in entries {
        out.push(halves(&entry.fingerprint).1, LOW_BITS);
    }
    for entry in entries {
        out.push(distance(extent.offsets.0, entry.offset), widths.offset);
    }
    for entry in entries {
        out.push(u64::from(entry.id().0 - extent.ids.0), widths.id);
    }
    for entry in entries {
        out.push(u64::from(entry.value_digest), DIGEST_BITS);
    }
    for entry in entries {
        out.push(u64::from(entry.flags()), widths.flags);
    }
    let mut block = [0; BLOCK_BYTES];
    for (to, from) in block.iter_mut().zip(out.finish()) {
        *to = from;
    }
    let sum = checksum(number, &block[4..]).to_le_bytes();
    block[..4].copy_from_slice(&sum);
    block
}

fn checksum(number: Number, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.run.to_le_bytes());
    hasher.update(&number.block.to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}

/// A block that has been checked.
pub(super) struct Block<'a> {
    bytes: &'a Buffer,
    entries: usize,
    widths: Widths,
    first_top: u64,
    first_offset: i64,
    first_id: u32,
    /// Where each column begins, in bits.
    columns: [usize; 6],
}

impl<'a> Block<'a> {
    /// Looks at a block; `None` where it is not the one that was written there.
    pub(super) fn new(number: Number, bytes: &'a Buffer) -> Option<Self> {
        let (sum, body) = bytes[..BLOCK_BYTES].split_first_chunk()?;
        if u32::from_le_bytes(*sum) != checksum(number, body) {
            return None;
        }
        let (entries, body) = body.split_first_chunk()?;
        let ([delta, offset, id, flags], body) = body.split_first_chunk()?;
        let (first_top, body) = body.split_first_chunk()?;
        let (first_offset, body) = body.split_first_chunk()?;
        let (first_id, _) = body.split_first_chunk()?;
        let entries = usize::from(u16::from_le_bytes(*entries));
        let widths = Widths {
            delta: u32::from(*delta),
            offset: u32::from(*offset),
            id: u32::from(*id),
            flags: u32::from(*flags),
        };
        let mut at = HEAD_BYTES * 8;
        let columns = [
            widths.delta,
            LOW_BITS,
            widths.offset,
            widths.id,
            DIGEST_BITS,
            widths.flags,
        ]
        .map(|width| {
            let begins = at;
            at += entries * width as usize;
            begins
        });
        (at <= BLOCK_BYTES * 8).then_some(Self {
            bytes,
            entries,
            widths,
            first_top: u64::from_le_bytes(*first_top),
            first_offset: i64::from_le_bytes(*first_offset),
            first_id: u32::from_le_bytes(*first_id),
            columns,
        })
    }

    fn number(&self, column: usize, at: usize, width: u32) -> u64 {
        let begins = self.columns.get(column).copied().unwrap_or_default();
        bits::read(self.bytes, begins + at * width as usize, width)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "each was written from a number of that size"
    )]
    fn entry(&self, at: usize, top: u64) -> Known {
        Known::from_parts(
            top,
            self.number(1, at, LOW_BITS),
            self.first_offset
                .wrapping_add(self.number(2, at, self.widths.offset) as i64),
            self.number(4, at, DIGEST_BITS) as u32,
            self.first_id
                .wrapping_add(self.number(3, at, self.widths.id) as u32),
            self.number(5, at, self.widths.flags) as u32,
        )
    }

    /// The entry of a key, by the halves of its fingerprint.
    pub(super) fn find(&self, (top, low): (u64, u64)) -> Option<Known> {
        let mut here = self.first_top;
        for at in 0..self.entries {
            here = here.wrapping_add(self.number(0, at, self.widths.delta));
            if here == top && self.number(1, at, LOW_BITS) == low {
                return Some(self.entry(at, top));
            }
            if here > top {
                break;
            }
        }
        None
    }

    /// Appends all entries to a list.
    pub(super) fn unpack(&self, to: &mut Vec<Known>) {
        let mut top = self.first_top;
        for at in 0..self.entries {
            top = top.wrapping_add(self.number(0, at, self.widths.delta));
            to.push(self.entry(at, top));
        }
    }
}

#[cfg(test)]
mod tests;
