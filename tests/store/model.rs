//! Units whose whole content follows from partition and offset, so that one process can check what
//! another wrote.

use idempotent_consumer::key::Fingerprint;
use idempotent_consumer::store::{Anchor, CommitUnit, Entry, Gaps, Lease, Owner, Store as _};
use idempotent_consumer::{NextOffset, TopicPartition};

use crate::kept::Kept;
pub(crate) use crate::kept::open;

pub(crate) fn owner() -> Owner {
    Owner {
        group: "ship-svc".into(),
        recipe: "record-key".into(),
        scope: "topic".into(),
    }
}

pub(crate) fn orders(partition: i32) -> TopicPartition {
    TopicPartition::new("orders", partition)
}

pub(crate) fn at(offset: i64) -> NextOffset {
    NextOffset::new(offset).unwrap()
}

pub(crate) fn key(partition: u32, offset: i64) -> Fingerprint {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(
        &(offset + 1)
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .to_le_bytes(),
    );
    bytes[8..12].copy_from_slice(&partition.to_le_bytes());
    Fingerprint::new(bytes)
}

pub(crate) fn result(partition: u32, offset: i64) -> Option<Vec<u8>> {
    (offset % 3 == 0).then(|| format!("shipped {partition}/{offset}").into_bytes())
}

pub(crate) fn unit(lease: &Lease, previous: i64, next: i64) -> CommitUnit {
    let entries = (previous..next).map(|offset| Entry {
        fingerprint: key(lease.id.0, offset),
        offset,
        value_digest: offset.unsigned_abs() ^ 0xabcd,
        result: result(lease.id.0, offset).map(Into::into),
        dead_lettered: false,
        forgotten: false,
        restored: false,
    });
    CommitUnit {
        id: lease.id,
        epoch: lease.epoch,
        previous: at(previous),
        next: at(next),
        max_timestamp_ms: 1_700_000_000_000 + next,
        anchor: Some(Anchor {
            offset: next - 1,
            timestamp_ms: 1_700_000_000_000 + next,
            digest: 7,
        }),
        entries: entries.collect(),
        gaps: Gaps::default(),
        outbox: Vec::new(),
    }
}

/// Checks that every key below `acknowledged[partition]` is there, that no record is missing on
/// the way to the head, and that the head is not below.
pub(crate) fn check(store: &Kept, acknowledged: &[i64]) -> Result<(), String> {
    let heads = store.heads();
    for (partition, acknowledged) in (0_u32..).zip(acknowledged) {
        let head = heads.get(partition as usize).and_then(|(_, head)| *head);
        let next = head.map_or(0, |head| head.next.get());
        if next < *acknowledged {
            return Err(format!(
                "partition {partition}: head {next} < {acknowledged}"
            ));
        }
        let keys: Vec<_> = (0..=next).map(|offset| key(partition, offset)).collect();
        let mut found = Vec::new();
        store.lookup(&keys, &mut found).map_err(|e| e.to_string())?;
        for (offset, mark) in (0..=next).zip(&found) {
            let known = mark.map(|mark| (mark.id.0, mark.offset, mark.value_digest));
            let expected = (partition, offset, offset.unsigned_abs() ^ 0xabcd);
            if known != Some(expected).filter(|_| offset < next) {
                return Err(format!("partition {partition}, offset {offset}: {mark:?}"));
            }
        }
        let mut position = at(0);
        while position < at(next) {
            let id = found[0].ok_or("no mark")?.id;
            let unit = store.unit_behind(id, position.into());
            let unit = unit.map_err(|e| e.to_string())?;
            let (_, unit) = unit.ok_or_else(|| format!("no record behind {position}"))?;
            if unit.previous != position {
                return Err(format!("a hole from {position} to {}", unit.previous));
            }
            for entry in &unit.entries {
                if entry.result.as_deref() != result(partition, entry.offset).as_deref() {
                    return Err(format!("partition {partition}: {entry:?}"));
                }
            }
            position = unit.next;
        }
    }
    Ok(())
}
