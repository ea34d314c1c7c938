//! The topic and the group's positions, as plain data.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::op::PARTITIONS;
use crate::record::OwnedHeaders;

/// The header that identifies a record.
pub(super) const HEADER: &str = "event-id";
/// Record keys, by which an order may be kept. Fewer than records, and nothing to do with copies.
const RECORD_KEYS: u64 = 3;

/// What makes two records the same event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    Key(usize),
    /// A record without a key, by the serial number of its production.
    Keyless(u64),
}

/// A record as it was produced.
#[derive(Debug)]
pub(super) struct Produced {
    pub(super) identity: Identity,
    pub(super) record_key: Vec<u8>,
    pub(super) headers: OwnedHeaders,
    pub(super) value: Vec<u8>,
    pub(super) timestamp_ms: i64,
}

/// One partition's log.
#[derive(Default)]
pub(super) struct Log {
    pub(super) records: BTreeMap<i64, Arc<Produced>>,
    pub(super) low: i64,
    pub(super) high: i64,
    /// It is another than the one that the store worked on, and the consumer must say so.
    pub(super) changed: bool,
}

impl Log {
    /// The record at or behind an offset.
    pub(super) fn from(&self, offset: i64) -> Option<(i64, &Arc<Produced>)> {
        let (offset, record) = self.records.range(offset..).next()?;
        Some((*offset, record))
    }

    /// Whether exactly this record is still there.
    pub(super) fn has(&self, offset: i64, identity: Identity) -> bool {
        let record = self.records.get(&offset);
        record.is_some_and(|record| record.identity == identity)
    }
}

/// All of it.
#[derive(Default)]
pub(super) struct Cluster {
    pub(super) logs: [Log; PARTITIONS],
    pub(super) committed: [Option<i64>; PARTITIONS],
    keys: usize,
    serial: u64,
}

impl Cluster {
    /// A record with a new key.
    pub(super) fn send(&mut self, partition: usize) -> Identity {
        self.keys += 1;
        let key = self.keys - 1;
        self.append(partition, Identity::Key(key), false)
    }

    /// A copy of a record, if there is a key at all.
    pub(super) fn again(&mut self, partition: usize, of: usize, altered: bool) {
        if let Some(key) = of.checked_rem(self.keys) {
            self.append(partition, Identity::Key(key), altered);
        }
    }

    pub(super) fn keyless(&mut self, partition: usize) {
        let identity = Identity::Keyless(self.serial);
        self.append(partition, identity, false);
    }

    fn append(&mut self, partition: usize, identity: Identity, altered: bool) -> Identity {
        let (key, value) = match identity {
            Identity::Key(key) if altered => (Some(key), format!("other {}", self.serial)),
            Identity::Key(key) => (Some(key), format!("value {key}")),
            Identity::Keyless(serial) => (None, format!("keyless {serial}")),
        };
        let record = Produced {
            identity,
            record_key: format!("{}", self.serial % RECORD_KEYS).into_bytes(),
            headers: OwnedHeaders(
                key.map(|key| {
                    let value = format!("key-{key}").into_bytes();
                    (HEADER.as_bytes().to_vec(), Some(value))
                })
                .into_iter()
                .collect(),
            ),
            value: value.into_bytes(),
            // Each another: a log that was cut and grown again is recognised by it.
            timestamp_ms: i64::try_from(self.serial).unwrap(),
        };
        self.serial += 1;
        let log = &mut self.logs[partition];
        log.records.insert(log.high, Arc::new(record));
        log.high += 1;
        identity
    }

    /// Not in a changed log: the record that shows the change is to be there.
    pub(super) fn marker(&mut self, partition: usize) {
        let log = &mut self.logs[partition];
        log.high += i64::from(!log.changed);
    }

    /// Removes a record that is not the last: Kafka never compacts the newest one away. Nothing
    /// of a changed log: the record that shows the change is to stay.
    pub(super) fn compact(&mut self, partition: usize, nth: usize) {
        let log = &mut self.logs[partition];
        let nth = nth.checked_rem(log.records.len().saturating_sub(1));
        let offset = nth.and_then(|nth| log.records.keys().nth(nth).copied());
        if let (Some(offset), false) = (offset, log.changed) {
            log.records.remove(&offset);
        }
    }

    pub(super) fn trim(&mut self, partition: usize, count: usize) {
        let log = &mut self.logs[partition];
        for _ in 0..count {
            if log.records.len() > 1 && !log.changed {
                log.records.pop_first();
            }
        }
        log.low = log.from(0).map_or(log.low, |(offset, _)| offset);
    }

    /// Cuts the log below the store's `head`, and grows it again with other records.
    pub(super) fn truncate(&mut self, partition: usize, head: i64, back: usize, grown: usize) {
        let log = &mut self.logs[partition];
        let below: Vec<_> = log.records.range(..head).map(|(at, _)| *at).collect();
        let Some(cut) = below.iter().rev().nth(back).copied() else {
            return;
        };
        // The record below the head is what the change is recognised by.
        if below.last() != Some(&(head - 1)) || log.changed {
            return;
        }
        log.records.split_off(&cut);
        (log.high, log.changed) = (cut, true);
        for _ in 0..grown {
            self.send(partition);
        }
    }

    /// Another topic under the same name. Its offsets begin at 0, and the group's go with the old
    /// one where nothing but they could tell the two apart.
    pub(super) fn recreate(&mut self, partition: usize, head: Option<i64>, grown: usize) {
        let log = &mut self.logs[partition];
        *log = Log {
            changed: head.is_some_and(|head| head > 0),
            ..Log::default()
        };
        if !log.changed {
            self.committed[partition] = None;
        }
        for _ in 0..grown {
            self.send(partition);
        }
    }

    /// Sets the group's position back, or deletes it.
    pub(super) fn rewind(&mut self, partition: usize, back: Option<usize>) {
        let log = &self.logs[partition];
        let committed = &mut self.committed[partition];
        *committed = match (*committed, back) {
            (Some(position), Some(back)) => {
                let mut below = log.records.range(..position).rev().map(|(at, _)| *at);
                below.nth(back - 1).or(Some(log.low.min(position)))
            }
            _ => None,
        };
    }
}
