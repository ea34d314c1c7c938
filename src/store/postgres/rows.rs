//! What rows say, and how values are written into them.

use std::collections::HashMap;

use tokio_postgres::Row;

use super::error::Failure;
use crate::key::{Fingerprint, HashKey};
use crate::record::{NextOffset, TopicPartition};
use crate::store::partitions::Partition;
use crate::store::{
    Anchor, CommitUnit, Entry, Gap, Gaps, Head, Mark, Owner, PartitionId, Place, StoreError,
};

/// The bits of `marks.flags`. Whether there is a result says its column.
pub(super) const DEAD_LETTERED: i16 = 1;
pub(super) const FORGOTTEN: i16 = 2;
pub(super) const RESTORED: i16 = 4;

const FINGERPRINT_BYTES: usize = 16;

/// Whom the store belongs to, as far as it was said.
pub(super) struct Stamp {
    pub(super) hash_key: HashKey,
    pub(super) owner: Option<Owner>,
    pub(super) cluster: Option<String>,
}

pub(super) fn stamp(row: &Row) -> Result<Stamp, Foreign> {
    let key = fingerprint(get(row, 0, "hash_key")?)?;
    let group: Option<String> = get(row, 1, "owner_group")?;
    let recipe: Option<String> = get(row, 2, "recipe")?;
    let scope: Option<String> = get(row, 3, "scope")?;
    let owner = match (group, recipe, scope) {
        (Some(group), Some(recipe), Some(scope)) => Some(Owner {
            group,
            recipe,
            scope,
        }),
        _ => None,
    };
    Ok(Stamp {
        hash_key: HashKey(key.0),
        owner,
        cluster: get(row, 4, "cluster")?,
    })
}

/// A partition as the database knows it.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) id: PartitionId,
    pub(super) partition: Partition,
    pub(super) retained_from: NextOffset,
    pub(super) restore_until: NextOffset,
}

/// What a row holds that this crate never wrote.
pub(super) struct Foreign(&'static str);

impl Foreign {
    pub(super) fn failure(&self, place: &str) -> Failure {
        Failure::lasting(StoreError::Database {
            place: place.to_owned(),
            operation: "reading rows",
            message: format!(
                "{} is not what this crate writes: was the table changed by hand?",
                self.0
            ),
        })
    }
}

/// A column of a row, under its own name in the error.
pub(super) fn get<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a Row,
    at: usize,
    name: &'static str,
) -> Result<T, Foreign> {
    row.try_get(at).map_err(|_| Foreign(name))
}

fn position(number: i64, name: &'static str) -> Result<NextOffset, Foreign> {
    NextOffset::new(number).ok_or(Foreign(name))
}

fn unsigned(number: i64, name: &'static str) -> Result<u32, Foreign> {
    u32::try_from(number).map_err(|_| Foreign(name))
}

fn id_of(number: i32) -> Result<PartitionId, Foreign> {
    let id = u32::try_from(number).map_err(|_| Foreign("a partition's number"))?;
    Ok(PartitionId(id))
}

/// A number as its column holds it. Numbers are dense, from 0.
pub(super) fn id_sql(id: PartitionId) -> i32 {
    i32::try_from(id.0).unwrap_or(-1)
}

/// A digest's bits in a column that has a sign.
pub(super) fn digest_sql(digest: u64) -> i64 {
    i64::from_ne_bytes(digest.to_ne_bytes())
}

fn digest(row: &Row, at: usize, name: &'static str) -> Result<u64, Foreign> {
    let number: i64 = get(row, at, name)?;
    Ok(u64::from_ne_bytes(number.to_ne_bytes()))
}

fn anchor(row: &Row, at: usize) -> Result<Option<Anchor>, Foreign> {
    let offset: Option<i64> = get(row, at, "anchor_offset")?;
    let Some(offset) = offset else {
        return Ok(None);
    };
    Ok(Some(Anchor {
        offset,
        timestamp_ms: get(row, at + 1, "anchor_timestamp_ms")?,
        digest: digest(row, at + 2, "anchor_digest")?,
    }))
}

/// Gaps as three numbers each: from, to, and 1 where it was forgotten.
pub(super) fn gaps_sql(gaps: &Gaps) -> Vec<i64> {
    let each = gaps.iter();
    each.flat_map(|gap| [gap.from, gap.to, i64::from(gap.forgotten)])
        .collect()
}

fn gaps(numbers: &[i64]) -> Result<Gaps, Foreign> {
    let mut gaps = Gaps::default();
    let mut end = 0;
    for each in numbers.chunks(3) {
        let [from, to, forgotten] = *each else {
            return Err(Foreign("gaps"));
        };
        if from < end || to <= from {
            return Err(Foreign("gaps"));
        }
        end = to;
        gaps.push(Gap {
            from,
            to,
            forgotten: forgotten != 0,
        });
    }
    Ok(gaps)
}

/// A row of `partitions`.
pub(super) fn partition(row: &Row) -> Result<Kept, Foreign> {
    let next: Option<i64> = get(row, 5, "next")?;
    let next = next.map(|next| position(next, "next")).transpose()?;
    let anchor = anchor(row, 8)?;
    let max_timestamp_ms = get(row, 11, "max_timestamp_ms")?;
    let topic: &str = get(row, 1, "topic")?;
    let numbers: Vec<i64> = get(row, 7, "gaps")?;
    Ok(Kept {
        id: id_of(get(row, 0, "id")?)?,
        partition: Partition {
            epoch: unsigned(get(row, 3, "epoch")?, "epoch")?,
            open: get(row, 4, "leased")?,
            head: next.map(|next| Head {
                next,
                anchor,
                max_timestamp_ms,
            }),
            place: Place {
                next: next.unwrap_or_default(),
                step: unsigned(get(row, 6, "step")?, "step")?,
            },
            gaps: gaps(&numbers)?,
            ..Partition::new(TopicPartition::new(topic, get(row, 2, "partition")?))
        },
        retained_from: position(get(row, 12, "retained_from")?, "retained_from")?,
        restore_until: position(get(row, 13, "restore_until")?, "restore_until")?,
    })
}

pub(super) fn fingerprint(bytes: &[u8]) -> Result<Fingerprint, Foreign> {
    let bytes = bytes.try_into().map_err(|_| Foreign("a fingerprint"))?;
    Ok(Fingerprint(bytes))
}

pub(super) fn retained_from(row: &Row) -> Result<NextOffset, Foreign> {
    position(get(row, 0, "retained_from")?, "retained_from")
}

/// A row of `marks`, with its key.
pub(super) fn mark(row: &Row) -> Result<(Fingerprint, Mark), Foreign> {
    let flags: i16 = get(row, 4, "flags")?;
    let mark = Mark {
        id: id_of(get(row, 1, "partition")?)?,
        offset: get(row, 2, "record_offset")?,
        value_digest: digest(row, 3, "value_digest")?,
        has_result: get(row, 5, "result")?,
        dead_lettered: flags & DEAD_LETTERED != 0,
        forgotten: flags & FORGOTTEN != 0,
        restored: flags & RESTORED != 0,
    };
    Ok((fingerprint(get(row, 0, "fingerprint")?)?, mark))
}

/// A claimed row: its key, and the commit that it is of.
pub(super) fn claim(row: &Row) -> Result<(Fingerprint, i64), Foreign> {
    let key = fingerprint(get(row, 0, "fingerprint")?)?;
    Ok((key, get(row, 1, "token")?))
}

/// A partition's epoch, the number of the transaction that asks, and whether the database has
/// constraints that may be checked late.
pub(super) fn epoch(row: &Row) -> Result<(u32, String, bool), Foreign> {
    let epoch = unsigned(get(row, 0, "epoch")?, "epoch")?;
    let number = get(row, 1, "a transaction's number")?;
    Ok((epoch, number, get(row, 2, "late constraints")?))
}

pub(super) fn flags_sql(entry: &Entry) -> i16 {
    let flag = |set: bool, bit| if set { bit } else { 0 };
    flag(entry.dead_lettered, DEAD_LETTERED)
        | flag(entry.forgotten, FORGOTTEN)
        | flag(entry.restored, RESTORED)
}

/// Of two marks of a key the higher counts: what took effect before what was only read, then what
/// went to the dead letters, then what was forgotten.
pub(super) fn rank(flags: i16) -> u8 {
    if flags & FORGOTTEN != 0 {
        0
    } else if flags & DEAD_LETTERED != 0 {
        1
    } else if flags & RESTORED != 0 {
        2
    } else {
        3
    }
}

/// The keys of a unit, one behind the other, in the order in which they were done.
pub(super) fn keys_sql(unit: &CommitUnit) -> Vec<u8> {
    let keys = unit.entries.iter();
    keys.flat_map(|entry| *entry.fingerprint.as_bytes())
        .collect()
}

/// The single keys of a unit.
pub(super) fn keys(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(FINGERPRINT_BYTES)
}

/// A row of `units`, its keys, and the token under which their marks stand.
pub(super) struct UnitRow {
    pub(super) place: Place,
    pub(super) unit: CommitUnit,
    pub(super) keys: Vec<u8>,
    pub(super) token: i64,
}

pub(super) fn unit(id: PartitionId, row: &Row) -> Result<UnitRow, Foreign> {
    let next = position(get(row, 0, "next")?, "next")?;
    let numbers: Vec<i64> = get(row, 9, "gaps")?;
    let unit = CommitUnit {
        id,
        epoch: unsigned(get(row, 3, "epoch")?, "epoch")?,
        previous: position(get(row, 2, "previous")?, "previous")?,
        next,
        max_timestamp_ms: get(row, 5, "max_timestamp_ms")?,
        anchor: anchor(row, 6)?,
        entries: Vec::new(),
        gaps: gaps(&numbers)?,
        outbox: Vec::new(),
    };
    Ok(UnitRow {
        place: Place {
            next,
            step: unsigned(get(row, 1, "step")?, "step")?,
        },
        unit,
        keys: get(row, 10, "keys")?,
        token: get(row, 4, "token")?,
    })
}

/// A unit as far as it has to be known to expire.
pub(super) struct OldUnit {
    pub(super) next: NextOffset,
    pub(super) token: i64,
    pub(super) keys: Vec<u8>,
    pub(super) max_timestamp_ms: i64,
}

pub(super) fn old_unit(row: &Row) -> Result<OldUnit, Foreign> {
    Ok(OldUnit {
        next: position(get(row, 0, "next")?, "next")?,
        token: get(row, 1, "token")?,
        keys: get(row, 2, "keys")?,
        max_timestamp_ms: get(row, 3, "max_timestamp_ms")?,
    })
}

/// The marks of a unit, in the order of its keys. A key that another unit has taken over since, or
/// had before, is not among them.
pub(super) fn entries(keys_in_order: &[u8], rows: &[Row]) -> Result<Vec<Entry>, Foreign> {
    let mut found = HashMap::with_capacity(rows.len());
    for row in rows {
        let key = fingerprint(get(row, 0, "fingerprint")?)?;
        let flags: i16 = get(row, 3, "flags")?;
        let result: Option<Vec<u8>> = get(row, 4, "result")?;
        let entry = Entry {
            fingerprint: key,
            offset: get(row, 1, "record_offset")?,
            value_digest: digest(row, 2, "value_digest")?,
            result: result.map(Into::into),
            dead_lettered: flags & DEAD_LETTERED != 0,
            forgotten: flags & FORGOTTEN != 0,
            restored: flags & RESTORED != 0,
        };
        found.insert(key, entry);
    }
    let mut entries = Vec::with_capacity(found.len());
    for key in keys(keys_in_order) {
        entries.extend(found.remove(&fingerprint(key)?));
    }
    Ok(entries)
}
