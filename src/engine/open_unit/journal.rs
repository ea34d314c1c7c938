//! What a death of the process would repeat, and keeping it from that before it is committed.

use super::{Inner, OpenUnit};
use crate::record::NextOffset;
use crate::store::{CommitUnit, Gaps, Store};

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

    /// The unit that ends at `next` is being written from here on.
    pub(super) fn taken(&mut self, next: NextOffset) {
        self.cut_off = self.to != next || self.at_risk > 0;
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
        let in_order = inner.held.is_empty() && inner.gaps == Gaps::default();
        let continues = kept.has_head && !kept.cut_off && in_order && !inner.closed;
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
            gaps: Gaps::default(),
            outbox: Vec::new(),
        };
        if store.journal(&part) {
            inner.kept.entries = inner.entries.len();
            inner.kept.to = inner.next;
            inner.kept.at_risk = 0;
        }
    }
}

#[cfg(test)]
#[cfg(feature = "sled")]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use crate::engine::{Candidate, Engine, Ledger};
    use crate::key::Scope;
    use crate::store::{Durability, Owner, SledOptions};
    use crate::{NextOffset, TopicPartition};

    fn engine(path: &Path) -> Engine {
        let owner = Owner {
            group: "group".into(),
            recipe: "line".into(),
            scope: "topic".into(),
        };
        let store = SledOptions::default().durability(Durability::Process);
        Engine::new(Arc::new(store.open(path).unwrap()), &owner, Scope::Topic).unwrap()
    }

    fn lines(engine: &Engine) -> Ledger {
        engine.lease(&TopicPartition::new("lines", 0)).unwrap()
    }

    fn look(ledger: &Ledger, offset: i64) -> Candidate {
        let candidate = ledger.candidate(offset, &offset.to_le_bytes(), None);
        let _new = ledger.look(&candidate).unwrap();
        candidate
    }

    fn done(ledger: &mut Ledger, offsets: std::ops::Range<i64>) {
        for offset in offsets {
            let candidate = look(ledger, offset);
            ledger.done(&candidate, None).unwrap();
        }
    }

    #[test]
    fn nothing_is_kept_behind_a_unit_under_way_that_was_not_wholly_kept() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("store");
        let engine_one = engine(&path);
        let mut ledger = lines(&engine_one);
        done(&mut ledger, 0..5);
        let late = look(&ledger, 5);
        ledger.hold(&late);
        done(&mut ledger, 6..11);
        engine_one.commit().unwrap();
        // Below the head, so that the unit ends where the one before did.
        ledger.done(&late, None).unwrap();
        let under_way = ledger.open.take(engine_one.store());
        assert!(under_way.is_some());
        done(&mut ledger, 11..20);
        assert_eq!(ledger.journal(), 10, "the one under way and nine behind it");
        drop((ledger, engine_one));
        // The unit under way never came to the log: neither did what lies behind it.
        let engine_two = engine(&path);
        let ledger = lines(&engine_two);
        let head = ledger.lease().head.unwrap();
        assert_eq!(Some(head.next), NextOffset::new(11));
        let gaps = engine_two.store().gaps(ledger.lease().id);
        assert_eq!(gaps.first(), NextOffset::new(5));
    }

    #[test]
    fn what_a_durable_unit_leaves_at_risk_is_what_lies_behind_it() {
        let mut kept = super::Kept::new(NextOffset::new(11));
        kept.at_risk = 1;
        kept.taken(NextOffset::new(11).unwrap());
        kept.at_risk += 9;
        assert!(kept.cut_off);
        kept.hardened();
        assert_eq!((kept.at_risk, kept.cut_off), (9, false));
    }
}
