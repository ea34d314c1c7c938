//! The bytes of a commit record, version 1. The layout is in docs/design.md.

use super::{Anchor, CommitUnit, Entry, PartitionId};
use crate::key::Fingerprint;
use crate::record::NextOffset;

const VERSION: u8 = 1;
const HAS_ANCHOR: u8 = 1;
const HEAD_BYTES: usize = 64;
const ENTRY_BYTES: usize = 16 + 8;
const CHECKSUM_BYTES: usize = 4;

/// The log's key: records of a partition lie together, in the order of their offsets.
pub(super) fn log_key(id: PartitionId, next: NextOffset) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&id.0.to_be_bytes());
    key[4..].copy_from_slice(&next.get().to_be_bytes());
    key
}

/// What a log key names, `None` for one that this crate never wrote.
pub(super) fn parse_log_key(key: &[u8]) -> Option<(PartitionId, NextOffset)> {
    let mut key = Reader(key);
    let id = u32::from_be_bytes(key.array()?);
    let next = NextOffset::new(i64::from_be_bytes(key.array()?))?;
    key.0.is_empty().then_some((PartitionId(id), next))
}

/// How long a unit is when it is written.
pub(super) fn encoded_bytes(unit: &CommitUnit) -> usize {
    let mut last = unit.previous.get();
    let mut bytes = HEAD_BYTES + CHECKSUM_BYTES;
    for entry in &unit.entries {
        let step = zigzag(entry.offset.wrapping_sub(last));
        last = entry.offset;
        bytes += ENTRY_BYTES + (64 - (step | 1).leading_zeros() as usize).div_ceil(7);
        bytes += entry.result.as_ref().map_or(0, |result| result.len() + 8);
    }
    bytes
}

/// Writes a unit. The checksum covers the log key too: a record under another's key is damage.
pub(super) fn encode(unit: &CommitUnit) -> Vec<u8> {
    let mut out = Vec::with_capacity(encoded_bytes(unit));
    let anchor = unit.anchor.unwrap_or(Anchor {
        offset: -1,
        timestamp_ms: -1,
        digest: 0,
    });
    out.extend_from_slice(&[
        VERSION,
        if unit.anchor.is_some() { HAS_ANCHOR } else { 0 },
        0,
        0,
    ]);
    out.extend_from_slice(&unit.epoch.to_le_bytes());
    out.extend_from_slice(&unit.previous.get().to_le_bytes());
    out.extend_from_slice(&unit.next.get().to_le_bytes());
    out.extend_from_slice(&unit.max_timestamp_ms.to_le_bytes());
    out.extend_from_slice(&anchor.offset.to_le_bytes());
    out.extend_from_slice(&anchor.timestamp_ms.to_le_bytes());
    out.extend_from_slice(&anchor.digest.to_le_bytes());
    out.extend_from_slice(&count(unit.entries.len()).to_le_bytes());
    out.extend_from_slice(
        &count(unit.entries.iter().filter(|e| e.result.is_some()).count()).to_le_bytes(),
    );
    for entry in &unit.entries {
        out.extend_from_slice(&entry.fingerprint.0);
        out.extend_from_slice(&entry.value_digest.to_le_bytes());
    }
    let mut last = unit.previous.get();
    for entry in &unit.entries {
        push_varint(&mut out, zigzag(entry.offset.wrapping_sub(last)));
        last = entry.offset;
    }
    for (place, entry) in unit.entries.iter().enumerate() {
        if let Some(result) = &entry.result {
            out.extend_from_slice(&count(place).to_le_bytes());
            out.extend_from_slice(&count(result.len()).to_le_bytes());
            out.extend_from_slice(result);
        }
    }
    let checksum = checksum(&log_key(unit.id, unit.next), &out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// Reads a record back; the error says what is wrong with it.
pub(super) fn decode(key: &[u8], value: &[u8]) -> Result<CommitUnit, &'static str> {
    let (id, next) = parse_log_key(key).ok_or("a key that is none of the log's")?;
    let body_len = value
        .len()
        .checked_sub(CHECKSUM_BYTES)
        .ok_or("a record too short")?;
    let (body, sum) = value.split_at(body_len);
    if sum != checksum(key, body).to_le_bytes() {
        return Err("a record whose checksum does not match");
    }
    let mut body = Reader(body);
    // The checksum matched: from here on a misfit is a record of another version.
    let unit = read_body(id, &mut body).ok_or("a record of an unknown version")?;
    if unit.next != next || unit.previous >= next || !body.0.is_empty() {
        return Err("a record that does not fit its place");
    }
    Ok(unit)
}

fn read_body(id: PartitionId, body: &mut Reader<'_>) -> Option<CommitUnit> {
    let [version, flags, _, _] = body.array()?;
    if version != VERSION || flags & !HAS_ANCHOR != 0 {
        return None;
    }
    let epoch = u32::from_le_bytes(body.array()?);
    let previous = NextOffset::new(body.i64()?)?;
    let next = NextOffset::new(body.i64()?)?;
    let max_timestamp_ms = body.i64()?;
    let anchor = Anchor {
        offset: body.i64()?,
        timestamp_ms: body.i64()?,
        digest: u64::from_le_bytes(body.array()?),
    };
    let entries = u32::from_le_bytes(body.array()?) as usize;
    let results = u32::from_le_bytes(body.array()?) as usize;
    // Bounded by what is there, not by what the count claims.
    if entries > body.0.len() / ENTRY_BYTES {
        return None;
    }
    let mut list = Vec::with_capacity(entries);
    for _ in 0..entries {
        list.push(Entry {
            fingerprint: Fingerprint(body.array()?),
            value_digest: u64::from_le_bytes(body.array()?),
            offset: 0,
            result: None,
        });
    }
    let mut offset = previous.get();
    for entry in &mut list {
        offset = offset.wrapping_add(unzigzag(body.varint()?));
        entry.offset = offset;
    }
    for _ in 0..results {
        let place = u32::from_le_bytes(body.array()?) as usize;
        let len = u32::from_le_bytes(body.array()?) as usize;
        list.get_mut(place)?.result = Some(body.take(len)?.into());
    }
    let anchor = (flags & HAS_ANCHOR != 0).then_some(anchor);
    Some(CommitUnit {
        id,
        epoch,
        previous,
        next,
        max_timestamp_ms,
        anchor,
        entries: list,
    })
}

fn checksum(key: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(body);
    hasher.finalize()
}

/// Units are bounded far below this; saturating keeps a bug a refused record, not a wrong one.
fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Small numbers of either sign become small unsigned ones.
#[expect(clippy::cast_sign_loss, reason = "the bits are kept, not the value")]
fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

#[expect(
    clippy::cast_possible_wrap,
    reason = "the inverse of zigzag, bit by bit"
)]
fn unzigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

fn push_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    out.push((n & 0x7f) as u8);
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn i64(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.array()?))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            n |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(n);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit() -> CommitUnit {
        let entry = |offset: i64, result: Option<&[u8]>| Entry {
            fingerprint: Fingerprint([offset.to_le_bytes()[0]; 16]),
            offset,
            value_digest: 9,
            result: result.map(Into::into),
        };
        CommitUnit {
            id: PartitionId(3),
            epoch: 2,
            previous: NextOffset::new(10).unwrap(),
            next: NextOffset::new(500).unwrap(),
            max_timestamp_ms: 77,
            anchor: Some(Anchor {
                offset: 499,
                timestamp_ms: 77,
                digest: 5,
            }),
            entries: vec![
                entry(10, None),
                entry(12, Some(b"")),
                entry(499, Some(b"paid")),
            ],
        }
    }

    #[test]
    fn a_record_comes_back_as_it_went() {
        for unit in [
            unit(),
            CommitUnit {
                anchor: None,
                entries: vec![],
                ..unit()
            },
        ] {
            let key = log_key(unit.id, unit.next);
            assert_eq!(encode(&unit).len(), encoded_bytes(&unit));
            assert_eq!(decode(&key, &encode(&unit)), Ok(unit));
        }
    }

    #[test]
    fn every_changed_bit_and_every_shorter_record_is_refused() {
        let unit = unit();
        let (key, good) = (log_key(unit.id, unit.next), encode(&unit));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&key, &bad).is_err(), "bit {bit}");
        }
        for len in 0..good.len() {
            assert!(decode(&key, &good[..len]).is_err(), "length {len}");
        }
    }

    #[test]
    fn a_record_under_another_key_is_refused() {
        let unit = unit();
        let good = encode(&unit);
        for key in [
            log_key(PartitionId(4), unit.next),
            log_key(unit.id, NextOffset::after(500)),
        ] {
            assert!(decode(&key, &good).is_err());
        }
    }

    #[test]
    fn keys_sort_as_partition_and_offset() {
        let key = |id, next| log_key(PartitionId(id), NextOffset::new(next).unwrap());
        assert!(key(0, i64::MAX) < key(1, 0));
        assert!(key(1, 255) < key(1, 256));
        assert_eq!(
            parse_log_key(&key(7, 9)),
            Some((PartitionId(7), NextOffset::new(9).unwrap()))
        );
        assert_eq!(parse_log_key(b"short"), None);
    }

    #[test]
    fn varints_hold_every_distance() {
        for n in [0, 1, -1, 63, 64, -64, -65, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            push_varint(&mut bytes, zigzag(n));
            assert_eq!(Reader(&bytes).varint().map(unzigzag), Some(n));
        }
    }
}
