//! The keys of one transaction: claimed at its beginning, kept or given back at its end.

use std::collections::{HashMap, HashSet};

use tokio_postgres::Row;

use super::marks::Marks;
use super::rows::{self, Foreign};
use crate::key::Fingerprint;
use crate::store::CommitUnit;
use crate::store::transaction::Claimed;

/// The transaction under way.
pub(super) struct Open {
    /// The number that the server gave it: nothing is committed in any other.
    pub(super) number: String,
    pub(super) token: i64,
    /// Whether a constraint may be checked later than the statement that it is about.
    pub(super) checks_late: bool,
    /// The claims that are rows of its own. Of the others the rows are only locked.
    fresh: Vec<Claimed>,
}

impl Open {
    /// From the rows that were claimed; says for each key whether it is. A key that is asked for
    /// twice is the first one's.
    pub(super) fn new(
        (number, checks_late): (String, bool),
        token: i64,
        keys: &[Claimed],
        claimed: &[Row],
    ) -> Result<(Self, Vec<bool>), Foreign> {
        let mut left = HashMap::with_capacity(claimed.len());
        for row in claimed {
            let (key, of) = rows::claim(row)?;
            left.insert(key, of);
        }
        let mut fresh = Vec::with_capacity(left.len());
        let answers = keys.iter().map(|claim| {
            let of = left.remove(&claim.fingerprint);
            if of == Some(token) {
                fresh.push(*claim);
            }
            of.is_some()
        });
        let answers = answers.collect();
        let open = Self {
            number,
            token,
            checks_late,
            fresh,
        };
        Ok((open, answers))
    }

    /// The marks that are not yet what the unit says, and the claims that it does not have.
    pub(super) fn sort_out<'a>(&'a self, unit: &'a CommitUnit) -> (Marks<'a>, Vec<&'a [u8]>) {
        let as_claimed: HashSet<(Fingerprint, i64, u64)> = self
            .fresh
            .iter()
            .map(|claim| (claim.fingerprint, claim.offset, claim.value_digest))
            .collect();
        let mut marks = Marks::default();
        let mut kept = HashSet::with_capacity(unit.entries.len());
        let mut standing = HashSet::new();
        for entry in &unit.entries {
            kept.insert(entry.fingerprint);
            let claim = (entry.fingerprint, entry.offset, entry.value_digest);
            let plain = entry.result.is_none() && rows::flags_sql(entry) == 0;
            if plain && as_claimed.contains(&claim) {
                standing.insert(entry.fingerprint);
            } else if !standing.contains(&entry.fingerprint) {
                marks.add(unit.id, self.token, entry);
            }
        }
        let given_back = self.fresh.iter();
        let given_back = given_back
            .filter(|claim| !kept.contains(&claim.fingerprint))
            .map(|claim| &claim.fingerprint.as_bytes()[..])
            .collect();
        (marks, given_back)
    }
}

/// Keys as the columns of one statement, each once.
#[derive(Default)]
pub(super) struct Columns<'a> {
    pub(super) fingerprints: Vec<&'a [u8]>,
    pub(super) offsets: Vec<i64>,
    pub(super) digests: Vec<i64>,
    pub(super) over_restored: Vec<&'a [u8]>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(keys: &'a [Claimed]) -> Self {
        let mut columns = Self::default();
        let mut seen = HashSet::with_capacity(keys.len());
        for key in keys {
            let bytes: &[u8] = key.fingerprint.as_bytes();
            if !seen.insert(bytes) {
                continue;
            }
            columns.fingerprints.push(bytes);
            columns.offsets.push(key.offset);
            columns.digests.push(rows::digest_sql(key.value_digest));
            if key.over_restored {
                columns.over_restored.push(bytes);
            }
        }
        columns
    }
}
