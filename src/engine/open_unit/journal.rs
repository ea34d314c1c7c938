//! What a death of the process would repeat, and keeping it from that before it is committed.

use super::{Inner, OpenUnit};
use crate::record::NextOffset;
use crate::store::{CommitUnit, Store};

/// How much of the unit under way the store has kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    /// Whether the partition has a head in the store: what is kept continues one.
    pub(super) has_head: bool,
    /// Entries, from the first.
    entries: usize,
    /// Where the next part begins.
    to: NextOffset,
    /// Effects that neither are kept nor have durable marks.
    pub(super) at_risk: usize,
    /// Those of them in the unit being written.
    in_flight: usize,
    /// Something of the unit being written was not kept: what comes behind it would continue
    /// nothing.
    cut_off: bool,
}

impl Kept {
    pub(super) fn new(head: Option<NextOffset>) -> Self {
        Self {
            has_head: head.is_some(),
            to: head.unwrap_or(NextOffset::ZERO),
            ..Self::default()
        }
    }

    /// The unit that ends at `next`, with so many entries, is being written from here on.
    ///
    /// What was settled below the head does not move it: where the head alone were compared, what is
    /// kept behind this unit would close gaps whose marks are in it.
    pub(super) fn taken(&mut self, next: NextOffset, entries: usize) {
        self.cut_off = self.to != next || self.entries != entries || self.at_risk > 0;
        self.in_flight = self.at_risk;
        self.entries = 0;
        self.to = next;
    }

    /// That unit is durable.
    pub(super) fn hardened(&mut self) {
        self.has_head = true;
        self.cut_off = false;
        self.at_risk -= self.in_flight;
        self.in_flight = 0;
    }
}

impl OpenUnit {
    /// Has the store keep what was settled since it last did. Says how many effects a death of the
    /// process would repeat now.
    pub(in crate::engine) fn journal(&self, store: &dyn Store) -> usize {
        let mut inner = self.inner();
        self.keep(&mut inner, store);
        inner.kept.at_risk
    }

    /// Before the unit is taken, too: else nothing could be kept behind it until it is durable.
    pub(super) fn keep(&self, inner: &mut Inner, store: &dyn Store) {
        let kept = &inner.kept;
        let continues = kept.has_head && !kept.cut_off && !inner.closed;
        // One that does not move the head could not be put in order with the others of its place.
        if !continues || kept.at_risk == 0 || inner.next <= kept.to {
            return;
        }
        let part = CommitUnit {
            id: self.id,
            epoch: self.epoch,
            previous: kept.to,
            next: inner.next,
            max_timestamp_ms: inner.max_timestamp_ms,
            anchor: inner.anchor,
            entries: inner.entries.iter().skip(kept.entries).cloned().collect(),
            gaps: inner.undone(),
            outbox: Vec::new(),
        };
        if store.journal(&part) {
            inner.kept.entries = inner.entries.len();
            inner.kept.to = inner.next;
            inner.kept.at_risk = 0;
        }
    }
}
