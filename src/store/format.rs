//! The bytes of a commit record, version 2; version 1 is read. The layout is in docs/design.md.

mod bytes;
mod key;
mod tail;

use self::bytes::{Reader, push_varint, unzigzag, varint_bytes, zigzag};
#[cfg(any(feature = "sled", feature = "redb"))]
pub(super) use self::key::log_key_behind;
pub(super) use self::key::{log_key, parse_log_key};
use self::tail::{TAIL_BYTES_MAX, read_tail, tail_numbers};
use super::tail::Tail;
use super::{Anchor, CommitUnit, Entry, Gap, Gaps, PartitionId, Place};
use crate::key::Fingerprint;
use crate::record::NextOffset;

const VERSION: u8 = 2;
/// Without steps, gaps and dead letters.
const FIRST_VERSION: u8 = 1;
const HAS_ANCHOR: u8 = 1;
const HAS_FORGOTTEN: u8 = 2;
const HAS_RESTORED: u8 = 4;
const HAS_TAIL: u8 = 8;
const FLAGS: u8 = HAS_ANCHOR | HAS_FORGOTTEN | HAS_RESTORED | HAS_TAIL;

type Is = fn(&Entry) -> bool;

/// What few units have of their entries: a flag, and behind the gaps a bit for each entry.
const MARKED: [(u8, Is); 2] = [
    (HAS_FORGOTTEN, |entry| entry.forgotten),
    (HAS_RESTORED, |entry| entry.restored),
];
const HEAD_BYTES: usize = 76;
const ENTRY_BYTES: usize = 16 + 8;
const CHECKSUM_BYTES: usize = 4;

/// A unit as it lies in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Logged {
    pub(super) place: Place,
    /// The step of the unit before, so that none is missed that shared its `next`.
    pub(super) previous_step: u32,
    pub(super) unit: CommitUnit,
    /// `None` for one that a version without retention wrote.
    pub(super) tail: Option<Tail>,
}

/// How long a unit is at most when it is written.
pub(super) fn encoded_bytes(unit: &CommitUnit) -> usize {
    let mut last = unit.previous.get();
    let mut bytes = HEAD_BYTES + CHECKSUM_BYTES + TAIL_BYTES_MAX;
    for entry in &unit.entries {
        bytes += ENTRY_BYTES + varint_bytes(zigzag(entry.offset.wrapping_sub(last)));
        last = entry.offset;
        bytes += entry.result.as_ref().map_or(0, |result| result.len() + 8);
        bytes += if entry.dead_lettered { 4 } else { 0 };
    }
    let marked = MARKED.iter().filter(|(_, is)| unit.entries.iter().any(is));
    bytes += marked.count() * unit.entries.len().div_ceil(8);
    let gaps = gap_numbers(&unit.gaps).map(varint_bytes);
    bytes + gaps.sum::<usize>()
}

/// Writes a unit. The checksum covers the log key too: a record under another's key is damage.
pub(super) fn encode(logged: &Logged) -> Vec<u8> {
    encode_unit(
        logged.place,
        logged.previous_step,
        &logged.unit,
        logged.tail,
    )
}

/// As `encode`, for the unit of that place, behind one of that step.
pub(super) fn encode_unit(
    place: Place,
    previous_step: u32,
    unit: &CommitUnit,
    tail: Option<Tail>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(encoded_bytes(unit));
    let anchor = unit.anchor.unwrap_or(Anchor {
        offset: -1,
        timestamp_ms: -1,
        digest: 0,
    });
    let flag = |set: bool, bit| if set { bit } else { 0 };
    let marked = MARKED.map(|(bit, is)| flag(unit.entries.iter().any(is), bit));
    let flags = flag(unit.anchor.is_some(), HAS_ANCHOR)
        | marked[0]
        | marked[1]
        | flag(tail.is_some(), HAS_TAIL);
    let places = || (0..).zip(&unit.entries);
    let results = || places().filter_map(|(at, entry)| Some((at, entry.result.as_ref()?)));
    let dead = || places().filter(|(_, entry)| entry.dead_lettered);
    out.extend_from_slice(&[VERSION, flags, 0, 0]);
    out.extend_from_slice(&unit.epoch.to_le_bytes());
    out.extend_from_slice(&unit.previous.get().to_le_bytes());
    out.extend_from_slice(&unit.next.get().to_le_bytes());
    out.extend_from_slice(&unit.max_timestamp_ms.to_le_bytes());
    out.extend_from_slice(&anchor.offset.to_le_bytes());
    out.extend_from_slice(&anchor.timestamp_ms.to_le_bytes());
    out.extend_from_slice(&anchor.digest.to_le_bytes());
    out.extend_from_slice(&count(unit.entries.len()).to_le_bytes());
    out.extend_from_slice(&count(results().count()).to_le_bytes());
    out.extend_from_slice(&previous_step.to_le_bytes());
    out.extend_from_slice(&count(dead().count()).to_le_bytes());
    out.extend_from_slice(&count(unit.gaps.iter().len()).to_le_bytes());
    for entry in &unit.entries {
        out.extend_from_slice(&entry.fingerprint.0);
        out.extend_from_slice(&entry.value_digest.to_le_bytes());
    }
    let mut last = unit.previous.get();
    for entry in &unit.entries {
        push_varint(&mut out, zigzag(entry.offset.wrapping_sub(last)));
        last = entry.offset;
    }
    for (place, result) in results() {
        out.extend_from_slice(&u32::to_le_bytes(place));
        out.extend_from_slice(&count(result.len()).to_le_bytes());
        out.extend_from_slice(result);
    }
    for (place, _) in dead() {
        out.extend_from_slice(&u32::to_le_bytes(place));
    }
    for number in gap_numbers(&unit.gaps) {
        push_varint(&mut out, number);
    }
    for (bit, is) in MARKED {
        if flags & bit != 0 {
            out.extend(unit.entries.chunks(8).map(|entries| bits(entries, is)));
        }
    }
    for number in tail.iter().flat_map(|tail| tail_numbers(tail, unit)) {
        push_varint(&mut out, number);
    }
    let checksum = checksum(log_key(unit.id, place).as_ref(), &out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// A bit for each of eight entries, the first the lowest: a unit that is forgotten as a whole must
/// not outgrow the bound that it was written under.
fn bits(entries: &[Entry], is: Is) -> u8 {
    let places = (0..).zip(entries);
    places.fold(0, |bits, (at, entry)| bits | u8::from(is(entry)) << at)
}

/// Gaps as they are written: how far each begins behind the one before, and its length with the
/// flag as its lowest bit.
#[expect(
    clippy::cast_sign_loss,
    reason = "gaps are in order and below an offset"
)]
fn gap_numbers(gaps: &Gaps) -> impl Iterator<Item = u64> + '_ {
    let mut end = 0;
    gaps.iter().flat_map(move |gap| {
        let step = (gap.from - end) as u64;
        end = gap.to;
        [
            step,
            ((gap.to - gap.from) as u64) << 1 | u64::from(gap.forgotten),
        ]
    })
}

/// Reads a record back; the error says what is wrong with it.
pub(super) fn decode(key: &[u8], value: &[u8]) -> Result<Logged, &'static str> {
    let (id, place) = parse_log_key(key).ok_or("a key that is none of the log's")?;
    let body_len = value
        .len()
        .checked_sub(CHECKSUM_BYTES)
        .ok_or("a record too short")?;
    let (body, sum) = value.split_at(body_len);
    if sum != checksum(key, body).to_le_bytes() {
        return Err("a record whose checksum does not match");
    }
    let mut body = Reader::new(body);
    // The checksum matched: from here on a misfit is a record of another version.
    let (unit, previous_step, tail) =
        read_body(id, &mut body).ok_or("a record of an unknown version")?;
    let moves = if place.step == 0 {
        unit.previous < place.next
    } else {
        unit.previous == place.next && previous_step == place.step - 1
    };
    if unit.next != place.next || !moves || !unit.gaps.fit_below(unit.next) || !body.is_empty() {
        return Err("a record that does not fit its place");
    }
    Ok(Logged {
        place,
        previous_step,
        unit,
        tail,
    })
}

fn read_body(id: PartitionId, body: &mut Reader<'_>) -> Option<(CommitUnit, u32, Option<Tail>)> {
    let [version, flags, zeros @ ..]: [u8; 4] = body.array()?;
    let known = [FIRST_VERSION, VERSION].contains(&version);
    if !known || flags & !FLAGS != 0 || zeros != [0, 0] {
        return None;
    }
    let epoch = body.u32()?;
    let previous = NextOffset::new(body.i64()?)?;
    let next = NextOffset::new(body.i64()?)?;
    let max_timestamp_ms = body.i64()?;
    let anchor = Anchor {
        offset: body.i64()?,
        timestamp_ms: body.i64()?,
        digest: u64::from_le_bytes(body.array()?),
    };
    let entries = body.u32()? as usize;
    let results = body.u32()?;
    let [previous_step, dead, gaps] = match version {
        FIRST_VERSION => [0; 3],
        _ => [body.u32()?, body.u32()?, body.u32()?],
    };
    let mut list = read_entries(body, entries, previous)?;
    for _ in 0..results {
        let place = body.u32()? as usize;
        let len = body.u32()? as usize;
        list.get_mut(place)?.result = Some(body.take(len)?.into());
    }
    for _ in 0..dead {
        let place = body.u32()? as usize;
        list.get_mut(place)?.dead_lettered = true;
    }
    let gaps = read_gaps(body, gaps)?;
    for bit in [HAS_FORGOTTEN, HAS_RESTORED] {
        if flags & bit == 0 {
            continue;
        }
        for entries in list.chunks_mut(8) {
            let [bits] = body.array()?;
            for (at, entry) in (0..).zip(entries) {
                let set = bits & 1_u8 << at != 0;
                match bit {
                    HAS_FORGOTTEN => entry.forgotten = set,
                    _ => entry.restored = set,
                }
            }
        }
    }
    let unit = CommitUnit {
        id,
        epoch,
        previous,
        next,
        max_timestamp_ms,
        anchor: (flags & HAS_ANCHOR != 0).then_some(anchor),
        entries: list,
        gaps,
        outbox: Vec::new(),
    };
    let tail = if flags & HAS_TAIL == 0 {
        None
    } else {
        Some(read_tail(body, &unit)?)
    };
    Some((unit, previous_step, tail))
}

fn read_entries(body: &mut Reader<'_>, count: usize, previous: NextOffset) -> Option<Vec<Entry>> {
    // Bounded by what is there, not by what the count claims.
    if count > body.len() / ENTRY_BYTES {
        return None;
    }
    let mut list = Vec::with_capacity(count);
    for _ in 0..count {
        list.push(Entry {
            fingerprint: Fingerprint(body.array()?),
            value_digest: u64::from_le_bytes(body.array()?),
            offset: 0,
            result: None,
            dead_lettered: false,
            forgotten: false,
            restored: false,
        });
    }
    let mut offset = previous.get();
    for entry in &mut list {
        offset = offset.wrapping_add(unzigzag(body.varint()?));
        entry.offset = offset;
    }
    Some(list)
}

fn read_gaps(body: &mut Reader<'_>, count: u32) -> Option<Gaps> {
    let mut gaps = Gaps::default();
    let mut end = 0_i64;
    for _ in 0..count {
        let from = end.checked_add(i64::try_from(body.varint()?).ok()?)?;
        let length = body.varint()?;
        end = from.checked_add(i64::try_from(length >> 1).ok()?)?;
        gaps.push(Gap {
            from,
            to: end,
            forgotten: length & 1 != 0,
        });
    }
    Some(gaps)
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

#[cfg(test)]
mod tests;
