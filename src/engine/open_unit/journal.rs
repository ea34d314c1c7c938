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

#[cfg(test)]
#[cfg(feature = "sled")]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use crate::engine::{Candidate, Engine, Ledger};
    use crate::key::Scope;
    use crate::record::{NextOffset, TopicPartition};
    use crate::store::{Gap, Owner, SledStore, Store as _};

    fn ledger(path: &Path) -> (Arc<SledStore>, Ledger) {
        let store = Arc::new(SledStore::open(path).unwrap());
        let owner = Owner {
            group: "shop".into(),
            recipe: "line".into(),
            scope: "topic".into(),
        };
        let engine = Engine::new(Arc::clone(&store) as _, &owner, Scope::Topic).unwrap();
        let ledger = engine.lease(&TopicPartition::new("orders", 0)).unwrap();
        (store, ledger)
    }

    /// Takes the records at these offsets in.
    fn hold(ledger: &mut Ledger, offsets: &[i64]) -> Vec<Candidate> {
        let mut held = Vec::new();
        for offset in offsets {
            let candidate = ledger.candidate(*offset, &offset.to_le_bytes(), None);
            ledger.hold(&candidate);
            held.push(candidate);
        }
        held
    }

    /// What the store knows when it is opened again: where the head is, what is not done below it,
    /// and which of these it has marks of.
    fn left(path: &Path, held: &[Candidate]) -> (i64, Vec<(i64, i64)>, Vec<i64>) {
        let (store, ledger) = ledger(path);
        let lease = ledger.lease();
        let gaps = store.gaps(lease.id);
        let gaps = gaps.iter().map(|Gap { from, to, .. }| (from, to)).collect();
        let keys: Vec<_> = held.iter().filter_map(|one| one.fingerprint).collect();
        let mut found = Vec::new();
        store.lookup(&keys, &mut found).unwrap();
        let known = held.iter().zip(found).filter(|(_, mark)| mark.is_some());
        let known = known.map(|(one, _)| one.offset).collect();
        (lease.head.unwrap().next.get(), gaps, known)
    }

    #[test]
    fn what_was_done_out_of_order_is_kept_with_what_is_left_open() {
        let parent = tempfile::tempdir().unwrap();
        let (store, mut ledger) = ledger(parent.path());
        let held = hold(&mut ledger, &[0, 1, 2, 3, 4]);
        ledger.done(&held[0], None).unwrap();
        ledger.commit_own().unwrap();
        ledger.done(&held[2], None).unwrap();
        ledger.done(&held[4], None).unwrap();
        assert_eq!(ledger.journal(), 0);
        ledger.done(&held[1], None).unwrap();
        assert_eq!(ledger.journal(), 1, "it does not move the head");
        drop((store, ledger));
        let expected = (5, vec![(1, 2), (3, 4)], vec![0, 2, 4]);
        assert_eq!(left(parent.path(), &held), expected);
    }

    #[test]
    fn nothing_is_kept_behind_a_unit_on_its_way_with_marks_that_were_not() {
        let parent = tempfile::tempdir().unwrap();
        let (store, mut ledger) = ledger(parent.path());
        let held = hold(&mut ledger, &[0, 1, 2, 3, 4]);
        ledger.done(&held[3], None).unwrap();
        ledger.commit_own().unwrap();
        ledger.done(&held[1], None).unwrap();
        // On its way, and never there.
        ledger.open.take(&*store).unwrap();
        ledger.done(&held[4], None).unwrap();
        assert_eq!(ledger.journal(), 2);
        drop((store, ledger));
        assert_eq!(left(parent.path(), &held), (4, vec![(0, 3)], vec![3]));
    }

    #[test]
    fn what_a_durable_unit_leaves_at_risk_is_what_lies_behind_it() {
        let mut kept = super::Kept::new(NextOffset::new(11));
        kept.at_risk = 1;
        kept.taken(NextOffset::new(11).unwrap(), 1);
        kept.at_risk += 9;
        assert!(kept.cut_off);
        kept.hardened();
        assert_eq!((kept.at_risk, kept.cut_off), (9, false));
    }
}
