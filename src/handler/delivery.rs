//! One record on its way to a handler.

use std::ops::Deref;

use crate::dead_letter::origin;
use crate::key::{Fingerprinter, Identity, Recipe};
use crate::record::Record;

/// A record with what was decided about it. Dereferences to the [`Record`].
#[derive(Clone, Copy)]
pub struct Delivery<'a> {
    pub(crate) record: Record<'a>,
    pub(crate) attempt: u32,
    pub(crate) in_doubt: bool,
    pub(crate) recipe: &'a Recipe,
    pub(crate) hasher: &'a Fingerprinter,
    /// A dead letter that came back: its identity is that of its first place.
    pub(crate) replayed: bool,
}

impl<'a> Delivery<'a> {
    /// The record.
    #[must_use]
    pub fn record(&self) -> Record<'a> {
        self.record
    }

    /// Counts the attempts of this process, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether the effect may have happened already, as far as this store can tell: its last lease
    /// of the partition did not end in order, or the group has committed further than it knows, so
    /// that another member was there. Often without harm done; ask the other side by the
    /// [token](Delivery::token).
    ///
    /// Not told: that another member with a store of its own took the partition, died before it had
    /// committed an offset, and left effects; and that a copy in another partition comes first. The
    /// token is the same there too.
    #[must_use]
    pub fn in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// The idempotency token: 32 hexadecimal digits, the same for every attempt and every copy, on
    /// every machine, after every restart, with or without the store. Made from group, topic and
    /// key (and the partition, if that is the scope); SHA-256, cut to 128 bits.
    ///
    /// A dead letter that is [read again](crate::Builder::replay_from) has the token of the record that
    /// it was. A record without a key has the token of its topic, partition and offset.
    #[must_use]
    pub fn token(&self) -> String {
        let first = self.replayed.then(|| origin(&self.record)).flatten();
        let record = first.map_or(self.record, |first| first.of(self.record));
        match self.recipe.identify(&record) {
            Ok(Some(identity)) => self.hasher.token(&identity),
            _ => self
                .hasher
                .token(&Identity::Place(record.partition, record.offset)),
        }
    }
}

impl<'a> Deref for Delivery<'a> {
    type Target = Record<'a>;

    fn deref(&self) -> &Record<'a> {
        &self.record
    }
}

impl std::fmt::Debug for Delivery<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delivery")
            .field("record", &self.record)
            .field("attempt", &self.attempt)
            .field("in_doubt", &self.in_doubt)
            .finish_non_exhaustive()
    }
}
