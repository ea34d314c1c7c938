//! What was decided, counted.

use std::collections::BTreeMap;

use crate::claim::Decision;
use crate::metrics;
use crate::record::{NextOffset, TopicPartition};

/// How many records were decided which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// New, and handled.
    pub new: u64,
    /// Seen before at the same place: a restart, a rebalance, a rewind.
    pub redelivery: u64,
    /// Another record with a known key and the same value: sent again.
    pub duplicate: u64,
    /// A known key with another value.
    pub mismatch: u64,
    /// Without a key, and handled all the same.
    pub missing_key: u64,
    /// Failed attempts that were followed by another.
    pub retried: u64,
    /// Written to the dead letters. One whose key is known with another value is also counted as a
    /// mismatch, any other nowhere else.
    pub dead_lettered: u64,
    /// Handed to the handler in doubt. Also counted as new or missing key.
    pub in_doubt: u64,
    /// Read for their keys only, to make up for what the store did not know.
    pub restored: u64,
}

impl Counts {
    pub(super) fn add(&mut self, decision: Decision) {
        match decision {
            Decision::New => self.new += 1,
            Decision::Redelivery => self.redelivery += 1,
            Decision::Duplicate => self.duplicate += 1,
            Decision::Mismatch => self.mismatch += 1,
            Decision::MissingKey => self.missing_key += 1,
        }
    }

    /// Records that were skipped, for whatever reason.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.redelivery + self.duplicate + self.mismatch
    }

    fn named(&self) -> [(&'static str, u64); 9] {
        [
            (Decision::New.name(), self.new),
            (Decision::Redelivery.name(), self.redelivery),
            (Decision::Duplicate.name(), self.duplicate),
            (Decision::Mismatch.name(), self.mismatch),
            (Decision::MissingKey.name(), self.missing_key),
            ("retried", self.retried),
            ("dead_lettered", self.dead_lettered),
            ("in_doubt", self.in_doubt),
            ("restored", self.restored),
        ]
    }

    /// Adds another count to this one, and empties it into the metrics.
    pub(super) fn absorb(&mut self, other: &mut Counts) {
        let other = std::mem::take(other);
        self.new += other.new;
        self.redelivery += other.redelivery;
        self.duplicate += other.duplicate;
        self.mismatch += other.mismatch;
        self.missing_key += other.missing_key;
        self.retried += other.retried;
        self.dead_lettered += other.dead_lettered;
        self.in_doubt += other.in_doubt;
        self.restored += other.restored;
        for (decision, count) in other.named() {
            if count > 0 {
                metrics::decided(decision, count);
            }
        }
    }
}

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The decisions.
    pub counts: Counts,
    /// How far each partition's work is durable.
    pub positions: BTreeMap<TopicPartition, NextOffset>,
}
