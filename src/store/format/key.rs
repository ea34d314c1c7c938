//! Under what a unit lies in the log.

use super::bytes::Reader;
use crate::record::NextOffset;
use crate::store::{PartitionId, Place};

/// A key of the log: units of a partition lie together, in the order of their places. Twelve bytes
/// for a unit that moves the head, and its step behind them for one that does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct LogKey([u8; 16], usize);

impl AsRef<[u8]> for LogKey {
    fn as_ref(&self) -> &[u8] {
        self.0.get(..self.1).unwrap_or(&self.0)
    }
}

pub(in crate::store) fn log_key(id: PartitionId, place: Place) -> LogKey {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&id.0.to_be_bytes());
    key[4..12].copy_from_slice(&place.next.get().to_be_bytes());
    key[12..].copy_from_slice(&place.step.to_be_bytes());
    LogKey(key, if place.step == 0 { 12 } else { 16 })
}

/// The lowest key behind a place.
pub(in crate::store) fn log_key_behind(id: PartitionId, place: Place) -> LogKey {
    let behind = match place.step.checked_add(1) {
        Some(step) => Place { step, ..place },
        None => Place {
            next: NextOffset::after(place.next.get()),
            step: 0,
        },
    };
    log_key(id, behind)
}

/// What a log key names, `None` for one that this crate never wrote.
pub(in crate::store) fn parse_log_key(key: &[u8]) -> Option<(PartitionId, Place)> {
    let mut key = Reader::new(key);
    let id = u32::from_be_bytes(key.array()?);
    let next = NextOffset::new(i64::from_be_bytes(key.array()?))?;
    let step = if key.is_empty() {
        0
    } else {
        Some(u32::from_be_bytes(key.array()?)).filter(|step| *step > 0)?
    };
    key.is_empty()
        .then_some((PartitionId(id), Place { next, step }))
}
