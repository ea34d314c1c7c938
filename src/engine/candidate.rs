//! What a decision needs of a record.

use crate::key::Fingerprint;
use crate::store::Anchor;

/// A record as far as its decision needs it: plain data, to be kept beside the record.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub(crate) offset: i64,
    pub(crate) timestamp_ms: i64,
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) value_digest: u64,
    /// Whether a [restored](crate::store::Mark::restored) mark does not answer for this record.
    pub(crate) over_restored: bool,
}

impl Candidate {
    /// Whether this is the record that an anchor describes.
    pub(crate) fn is_at(&self, anchor: &Anchor) -> bool {
        self.anchor() == *anchor
    }

    /// How the record is known again.
    pub(crate) fn anchor(&self) -> Anchor {
        Anchor {
            offset: self.offset,
            timestamp_ms: self.timestamp_ms,
            digest: self.anchor_digest(),
        }
    }

    pub(super) fn anchor_digest(&self) -> u64 {
        self.value_digest.rotate_left(1) ^ self.fingerprint.map_or(0, Fingerprint::low)
    }
}
