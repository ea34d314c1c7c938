//! What the index keeps of one key.

use crate::key::Fingerprint;
use crate::store::{Entry, Mark, PartitionId};

/// In the top bits of a partition's number: ids are dense and far below them.
const HAS_RESULT: u32 = 1 << 31;
const DEAD_LETTERED: u32 = 1 << 30;
const FORGOTTEN: u32 = 1 << 29;
const RESTORED: u32 = 1 << 28;
const FLAGS: u32 = HAS_RESULT | DEAD_LETTERED | FORGOTTEN | RESTORED;
/// How far the flags lie from the lowest bit.
#[cfg(any(feature = "sled", feature = "redb"))]
pub(super) const FLAGS_SHIFT: u32 = FLAGS.trailing_zeros();

/// 32 bytes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) fingerprint: Fingerprint,
    pub(super) offset: i64,
    pub(super) value_digest: u32,
    id_and_flags: u32,
}

impl Known {
    pub(super) fn new(id: PartitionId, entry: &Entry) -> Self {
        let flag = |set: bool, bit| if set { bit } else { 0 };
        Self {
            fingerprint: entry.fingerprint,
            offset: entry.offset,
            value_digest: low_half(entry.value_digest),
            id_and_flags: id.0
                | flag(entry.result.is_some(), HAS_RESULT)
                | flag(entry.dead_lettered, DEAD_LETTERED)
                | flag(entry.forgotten, FORGOTTEN)
                | flag(entry.restored, RESTORED),
        }
    }

    fn has(&self, flag: u32) -> bool {
        self.id_and_flags & flag != 0
    }

    pub(super) fn id(&self) -> PartitionId {
        PartitionId(self.id_and_flags & !FLAGS)
    }

    /// Of two marks of a key the higher counts, in whatever order they come: what took effect
    /// before what was only read, then what went to the dead letters, then what was forgotten.
    /// Of two of one rank the first.
    pub(super) fn rank(&self) -> u8 {
        if self.has(FORGOTTEN) {
            0
        } else if self.has(DEAD_LETTERED) {
            1
        } else if self.has(RESTORED) {
            2
        } else {
            3
        }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            id: self.id(),
            offset: self.offset,
            value_digest: u64::from(self.value_digest),
            has_result: self.has(HAS_RESULT),
            dead_lettered: self.has(DEAD_LETTERED),
            forgotten: self.has(FORGOTTEN),
            restored: self.has(RESTORED),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
fn low_half(digest: u64) -> u32 {
    digest as u32
}

/// As runs keep it.
#[cfg(any(feature = "sled", feature = "redb"))]
impl Known {
    pub(super) fn from_parts(
        top: u64,
        low: u64,
        offset: i64,
        digest: u32,
        id: u32,
        flags: u32,
    ) -> Self {
        let mut bytes = [0; 16];
        let (first, last) = bytes.split_at_mut(8);
        first.copy_from_slice(&top.to_be_bytes());
        last.copy_from_slice(&low.to_be_bytes());
        Self {
            fingerprint: Fingerprint(bytes),
            offset,
            value_digest: digest,
            id_and_flags: id & !FLAGS | flags << FLAGS_SHIFT,
        }
    }

    /// The four flags as a number.
    pub(super) fn flags(&self) -> u32 {
        self.id_and_flags >> FLAGS_SHIFT
    }
}

/// The halves of a fingerprint, so that their order is the order of its bytes.
#[cfg(any(feature = "sled", feature = "redb"))]
pub(super) fn halves(key: &Fingerprint) -> (u64, u64) {
    let key = u128::from_be_bytes(*key.as_bytes());
    let top = u64::try_from(key >> 64).unwrap_or(u64::MAX);
    let low = u64::try_from(key & u128::from(u64::MAX)).unwrap_or(u64::MAX);
    (top, low)
}
