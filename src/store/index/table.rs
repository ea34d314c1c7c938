//! Known keys in memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;

use super::known::Known;
use crate::key::Fingerprint;
use crate::store::{CommitUnit, Mark, PartitionId};

/// One for each first byte, so that one after the other is sorted and written. A table that has to
/// grow fits the processor's cache: one for all spent as long on growing as on everything else.
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

/// A key's table.
fn table_of(key: &Fingerprint) -> usize {
    let [first, ..] = key.as_bytes();
    usize::from(*first) % TABLES
}

/// Its place within the table, by the half that the first byte is not in. Uniformly spread already.
fn place_of(key: &Fingerprint) -> u64 {
    let (_, half) = key.as_bytes().split_at(8);
    half.first_chunk()
        .map_or(0, |half| u64::from_le_bytes(*half))
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
            see(table.find(place_of(key), |known| known.fingerprint == *key));
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
                let hash = place_of(&known.fingerprint);
                let same = |other: &Known| other.fingerprint == known.fingerprint;
                let table = &mut tables[table_of(&known.fingerprint)];
                match table.entry(hash, same, |other| place_of(&other.fingerprint)) {
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
                if let Ok(slot) = table.find_entry(place_of(&entry.fingerprint), own) {
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

    /// Calls `take` with all of it in the order of the fingerprints. For one who inserts nothing
    /// meanwhile; a copy of a 256th is in memory at a time.
    #[cfg(any(feature = "sled", feature = "redb"))]
    pub(super) fn each_in_order<E>(
        &self,
        mut take: impl FnMut(&Known) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut sorted: Vec<Known> = Vec::new();
        for at in 0..TABLES {
            let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
            sorted.clear();
            sorted.extend(&tables[at]);
            drop(tables);
            sorted.sort_unstable_by_key(|known| u128::from_be_bytes(*known.fingerprint.as_bytes()));
            sorted.iter().try_for_each(&mut take)?;
        }
        Ok(())
    }
}

#[cfg(all(test, any(feature = "sled", feature = "redb")))]
mod tests {
    use super::*;
    use crate::record::NextOffset;
    use crate::store::{Entry, Gaps, PartitionId};

    #[test]
    fn all_keys_come_once_and_in_the_order_of_their_fingerprints() {
        let key = |number: u64| {
            let bytes = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            let mut key = [0; 16];
            key[..8].copy_from_slice(&bytes);
            key[8..].copy_from_slice(&number.to_be_bytes());
            Fingerprint(key)
        };
        let entries = (0..5_000).map(|number| Entry {
            fingerprint: key(number),
            offset: i64::try_from(number).unwrap(),
            value_digest: 0,
            result: None,
            dead_lettered: false,
            forgotten: false,
            restored: false,
        });
        let table = Table::default();
        let unit = CommitUnit {
            id: PartitionId(0),
            epoch: 1,
            previous: NextOffset::ZERO,
            next: NextOffset::after(4_999),
            max_timestamp_ms: -1,
            anchor: None,
            entries: entries.collect(),
            gaps: Gaps::default(),
            outbox: Vec::new(),
        };
        table.insert(&unit, |_, _| true);
        let mut seen = Vec::new();
        let taken = table.each_in_order(|known| {
            seen.push(*known.fingerprint.as_bytes());
            Ok::<(), ()>(())
        });
        taken.unwrap();
        let mut expected: Vec<_> = (0..5_000).map(|number| *key(number).as_bytes()).collect();
        expected.sort_unstable();
        assert_eq!(seen, expected);
    }
}
