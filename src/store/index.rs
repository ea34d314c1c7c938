//! Which keys are known, in memory; rebuilt from the log when a store is opened.

use std::sync::{PoisonError, RwLock};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;

use super::{CommitUnit, Entry, Mark, PartitionId};
use crate::key::Fingerprint;

/// In the top bits of a slot's partition: ids are dense and far below them.
const HAS_RESULT: u32 = 1 << 31;
const DEAD_LETTERED: u32 = 1 << 30;
const FORGOTTEN: u32 = 1 << 29;
const RESTORED: u32 = 1 << 28;
const FLAGS: u32 = HAS_RESULT | DEAD_LETTERED | FORGOTTEN | RESTORED;

/// 40 bytes a key, and about a seventh more for the table's free places.
#[derive(Clone, Copy)]
struct Known {
    fingerprint: Fingerprint,
    offset: i64,
    value_digest: u64,
    id_and_flags: u32,
}

impl Known {
    fn new(id: PartitionId, entry: &Entry) -> Self {
        let flag = |set: bool, bit| if set { bit } else { 0 };
        Self {
            fingerprint: entry.fingerprint,
            offset: entry.offset,
            value_digest: entry.value_digest,
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

    /// Of two marks of a key the higher counts, in whatever order they come: what took effect
    /// before what was only read, then what went to the dead letters, then what was forgotten.
    fn rank(&self) -> u8 {
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

    fn mark(&self) -> Mark {
        Mark {
            id: PartitionId(self.id_and_flags & !FLAGS),
            offset: self.offset,
            value_digest: self.value_digest,
            has_result: self.has(HAS_RESULT),
            dead_lettered: self.has(DEAD_LETTERED),
            forgotten: self.has(FORGOTTEN),
            restored: self.has(RESTORED),
        }
    }
}

/// A power of two, and so many that a table that has to grow fits the processor's cache. One
/// table for all spent as long on growing as on everything else.
const TABLES: usize = 256;
/// Keys inserted under one lock. Look-ups wait for a few microseconds, not for a whole unit.
const INSERTED_AT_ONCE: usize = 64;

/// The known keys. Many threads look up, one commits.
///
/// One lock for all tables: a lock for each would be taken for each key, and nothing is read from
/// memory ahead of an atomic operation, while the misses of many plain reads overlap.
pub(super) struct Index(RwLock<Box<[HashTable<Known>]>>);

impl Default for Index {
    fn default() -> Self {
        Self(RwLock::new((0..TABLES).map(|_| HashTable::new()).collect()))
    }
}

/// A key's table. By the last byte: the first eight choose the place within the table.
fn table_of(key: &Fingerprint) -> usize {
    let [.., last] = key.as_bytes();
    usize::from(*last) % TABLES
}

impl Index {
    /// One answer a key, in order.
    pub(super) fn lookup(&self, keys: &[Fingerprint], found: &mut Vec<Option<Mark>>) {
        found.clear();
        // A panic cannot leave a table half changed: slots are plain data.
        let tables = self.0.read().unwrap_or_else(PoisonError::into_inner);
        found.extend(keys.iter().map(|key| {
            tables[table_of(key)]
                .find(key.low(), |known| known.fingerprint == *key)
                .map(Known::mark)
        }));
    }

    /// Adds a unit's keys. The first mark of a key stands: it names the record that took effect. One
    /// of a dead letter, or that was forgotten, gives way to one of work.
    pub(super) fn insert(&self, unit: &CommitUnit) {
        for entries in unit.entries.chunks(INSERTED_AT_ONCE) {
            let mut tables = self.0.write().unwrap_or_else(PoisonError::into_inner);
            for entry in entries {
                let known = Known::new(unit.id, entry);
                let hash = known.fingerprint.low();
                let same = |other: &Known| other.fingerprint == known.fingerprint;
                let table = &mut tables[table_of(&known.fingerprint)];
                match table.entry(hash, same, |other| other.fingerprint.low()) {
                    Slot::Vacant(slot) => drop(slot.insert(known)),
                    Slot::Occupied(mut slot) if slot.get().rank() < known.rank() => {
                        *slot.get_mut() = known;
                    }
                    Slot::Occupied(_) => {}
                }
            }
        }
    }

    /// Takes out the keys whose mark is a unit's own.
    pub(super) fn remove(&self, unit: &CommitUnit) {
        for entries in unit.entries.chunks(INSERTED_AT_ONCE) {
            let mut tables = self.0.write().unwrap_or_else(PoisonError::into_inner);
            for entry in entries {
                let own = |known: &Known| {
                    known.fingerprint == entry.fingerprint
                        && known.offset == entry.offset
                        && known.mark().id == unit.id
                };
                let table = &mut tables[table_of(&entry.fingerprint)];
                if let Ok(slot) = table.find_entry(entry.fingerprint.low(), own) {
                    slot.remove();
                }
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        let tables = self.0.read().unwrap_or_else(PoisonError::into_inner);
        tables.iter().map(HashTable::len).sum()
    }
}
