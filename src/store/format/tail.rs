//! The bytes of a tail.

use super::bytes::{Reader, unzigzag, zigzag};
use crate::record::NextOffset;
use crate::store::CommitUnit;
use crate::store::tail::{Tail, Total};

const TAIL_NUMBERS: usize = 6;
/// The longest tail.
pub(super) const TAIL_BYTES_MAX: usize = TAIL_NUMBERS * 10;

/// A tail as it is written: each number as its distance from one that is mostly near.
pub(super) fn tail_numbers(tail: &Tail, unit: &CommitUnit) -> [u64; TAIL_NUMBERS] {
    let near = |n: i64, other: i64| zigzag(n.wrapping_sub(other));
    let [one, other] = tail.samples_ms;
    [
        near(unit.previous.get(), tail.began.get()),
        near(tail.clock_ms, unit.max_timestamp_ms),
        near(one, tail.clock_ms),
        near(other, tail.clock_ms),
        tail.before.entries,
        tail.before.bytes,
    ]
}

pub(super) fn read_tail(body: &mut Reader<'_>, unit: &CommitUnit) -> Option<Tail> {
    let mut near = |other: i64| Some(other.wrapping_add(unzigzag(body.varint()?)));
    let distance = near(0)?;
    let clock_ms = near(unit.max_timestamp_ms)?;
    let samples_ms = [near(clock_ms)?, near(clock_ms)?];
    Some(Tail {
        began: NextOffset::new(unit.previous.get().wrapping_sub(distance))?,
        clock_ms,
        samples_ms,
        before: Total {
            entries: body.varint()?,
            bytes: body.varint()?,
        },
    })
}
