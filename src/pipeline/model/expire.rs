//! What retention drops: the oldest units of a partition, below what is done and committed.

use super::history::Marks;
use super::stage::World;
use crate::key::Fingerprint;
use crate::record::NextOffset;
use crate::store::{Expiry, Place};

impl Marks {
    /// Expires up to `units` units of a partition, none above `committed`. Gives back their keys.
    fn expire(&self, partition: usize, units: usize, committed: i64) -> Vec<Fingerprint> {
        let (Some(id), Some(position)) = (self.id(partition), self.position(partition)) else {
            return Vec::new();
        };
        let below = position.min(committed);
        let (mut place, mut keys, mut end) = (Place::default(), Vec::new(), None);
        for _ in 0..units {
            let Some((at, unit)) = self.store.unit_behind(id, place).unwrap() else {
                break;
            };
            if at.next.get() > below {
                break;
            }
            place = at;
            end = Some(at.next);
            keys.extend(
                unit.entries
                    .iter()
                    .map(|entry| (at.next, entry.fingerprint)),
            );
        }
        let expired = self.store.retaining().unwrap().expire(&Expiry {
            id,
            older_than_ms: i64::MAX,
            below: end.unwrap_or(NextOffset::ZERO),
            entries: u64::MAX,
            bytes: u64::MAX,
        });
        expired.unwrap();
        let from = self.store.retained_from(id);
        keys.retain(|(next, _)| *next <= from);
        keys.into_iter().map(|(_, key)| key).collect()
    }
}

impl World {
    /// Retention drops what it may.
    pub(super) fn expire(&mut self, partition: usize, units: usize) {
        let (Some(marks), Some(committed)) = (&self.marks, self.cluster.committed[partition])
        else {
            return;
        };
        let keys = marks.expire(partition, units, committed);
        let gone = self.history.expired(&keys, marks);
        self.log.push(format!("expired: {gone:?}"));
    }
}
