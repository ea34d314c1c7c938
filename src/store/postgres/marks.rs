//! Marks as the columns of one statement.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use tokio_postgres::types::ToSql;

use super::rows;
use crate::key::Fingerprint;
use crate::store::{Entry, PartitionId};

/// Columns for the statement that puts marks, at most one for each key: a statement may not write a
/// row twice.
#[derive(Default)]
pub(super) struct Marks<'a> {
    places: HashMap<Fingerprint, usize>,
    fingerprints: Vec<&'a [u8]>,
    partitions: Vec<i32>,
    tokens: Vec<i64>,
    offsets: Vec<i64>,
    digests: Vec<i64>,
    flags: Vec<i16>,
    results: Vec<Option<&'a [u8]>>,
}

impl<'a> Marks<'a> {
    /// Adds a mark. Of two with one key the first stands, unless it has to give way.
    pub(super) fn add(&mut self, id: PartitionId, token: i64, entry: &'a Entry) {
        let flags = rows::flags_sql(entry);
        let at = match self.places.entry(entry.fingerprint) {
            Slot::Vacant(place) => {
                place.insert(self.flags.len());
                self.fingerprints.push(entry.fingerprint.as_bytes());
                self.partitions.push(0);
                self.tokens.push(0);
                self.offsets.push(0);
                self.digests.push(0);
                self.flags.push(0);
                self.results.push(None);
                self.flags.len() - 1
            }
            Slot::Occupied(place) if rows::rank(self.flags[*place.get()]) < rows::rank(flags) => {
                *place.get()
            }
            Slot::Occupied(_) => return,
        };
        self.partitions[at] = rows::id_sql(id);
        self.tokens[at] = token;
        self.offsets[at] = entry.offset;
        self.digests[at] = rows::digest_sql(entry.value_digest);
        self.flags[at] = flags;
        self.results[at] = entry.result.as_deref();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.flags.is_empty()
    }

    pub(super) fn columns(&self) -> [&(dyn ToSql + Sync); 7] {
        [
            &self.fingerprints,
            &self.partitions,
            &self.tokens,
            &self.offsets,
            &self.digests,
            &self.flags,
            &self.results,
        ]
    }
}
