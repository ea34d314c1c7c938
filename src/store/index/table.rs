//! Known keys in memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;

use super::known::Known;
use crate::key::Fingerprint;
use crate::store::{CommitUnit, Mark, PartitionId};

/// A power of two, and so many that a table that has to grow fits the processor's cache. One
/// table for all spent as long on growing as on everything else.
const TABLES: usize = 256;
/// Keys inserted under one lock. Look-ups wait for a few microseconds, not for a whole unit.
const INSERTED_AT_ONCE: usize = 64;

/// Keys with their marks. Many threads look up, one commits.
///
/// One lock for all tables: a lock for each would be taken for each key, and nothing is read from
/// memory ahead of an atomic operation, while the misses of many plain reads overlap.
pub(in crate::store) struct Table {
    tables: RwLock<Box<[HashTable<Known>]>>,
    len: AtomicUsize,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            tables: RwLock::new((0..TABLES).map(|_| HashTable::new()).collect()),
            len: AtomicUsize::new(0),
        }
    }
}

/// A key's table. By the last byte: the first eight choose the place within the table.
fn table_of(key: &Fingerprint) -> usize {
    let [.., last] = key.as_bytes();
    usize::from(*last) % TABLES
}

impl Table {
    /// One answer a key, in order.
    pub(in crate::store) fn lookup(&self, keys: &[Fingerprint], found: &mut Vec<Option<Mark>>) {
        found.clear();
        found.resize(keys.len(), None);
        let mut found = found.iter_mut();
        self.each(keys, |known| {
            if let Some(place) = found.next() {
                *place = known.map(Known::mark);
            }
        });
    }

    /// Calls `see` with what is known of each key, in order.
    pub(super) fn each(&self, keys: &[Fingerprint], mut see: impl FnMut(Option<&Known>)) {
        // A panic cannot leave a table half changed: slots are plain data.
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            let table = &tables[table_of(key)];
            see(table.find(key.low(), |known| known.fingerprint == *key));
        }
    }

    /// Adds a unit's keys. The first mark of a key stands: it names the record that took effect. One
    /// of a dead letter, or that was forgotten, gives way to one of work; and one that does not
    /// count any more, though it is still here, to any that does. `counts` tells by partition and
    /// offset.
    pub(in crate::store) fn insert(
        &self,
        unit: &CommitUnit,
        counts: impl Fn(PartitionId, i64) -> bool,
    ) {
        for entries in unit.entries.chunks(INSERTED_AT_ONCE) {
            let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
            let mut added = 0;
            for entry in entries {
                let known = Known::new(unit.id, entry);
                if !counts(unit.id, known.offset) {
                    continue;
                }
                let hash = known.fingerprint.low();
                let same = |other: &Known| other.fingerprint == known.fingerprint;
                let table = &mut tables[table_of(&known.fingerprint)];
                match table.entry(hash, same, |other| other.fingerprint.low()) {
                    Slot::Vacant(slot) => {
                        slot.insert(known);
                        added += 1;
                    }
                    Slot::Occupied(mut slot) => {
                        let there = slot.get();
                        if there.rank() < known.rank() || !counts(there.id(), there.offset) {
                            *slot.get_mut() = known;
                        }
                    }
                }
            }
            self.len.fetch_add(added, Ordering::Relaxed);
        }
    }

    /// Takes out the keys whose mark is a unit's own.
    pub(in crate::store) fn remove(&self, unit: &CommitUnit) {
        for entries in unit.entries.chunks(INSERTED_AT_ONCE) {
            let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
            let mut removed = 0;
            for entry in entries {
                let own = |known: &Known| {
                    known.fingerprint == entry.fingerprint
                        && known.offset == entry.offset
                        && known.id() == unit.id
                };
                let table = &mut tables[table_of(&entry.fingerprint)];
                if let Ok(slot) = table.find_entry(entry.fingerprint.low(), own) {
                    slot.remove();
                    removed += 1;
                }
            }
            self.len.fetch_sub(removed, Ordering::Relaxed);
        }
    }

    pub(in crate::store) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// All of it, in the order of the fingerprints.
    #[cfg(any(feature = "sled", feature = "redb"))]
    pub(super) fn sorted(&self) -> Vec<Known> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Known> = Vec::with_capacity(self.len());
        all.extend(tables.iter().flatten());
        drop(tables);
        all.sort_unstable_by_key(|known| u128::from_be_bytes(*known.fingerprint.as_bytes()));
        all
    }
}
