//! What becomes of a record: passed over, restored, refused, or handed out.

use std::sync::Arc;

use super::known::Copied;
use super::restore::RESTORE_WAIT;
use super::{Lane, READ_WAIT, Step};
use crate::claim::{Decision, answers_for};
use crate::dead_letter::Reason;
use crate::engine::{Candidate, Committed, Look};
use crate::error::Error;
use crate::pipeline::settings::Ordering;
use crate::pipeline::work::{Errand, Work};
use crate::record::NextOffset;
use crate::store::{Gap, Mark};

impl Lane {
    /// Decides about the record under the cursor and moves the cursor behind it.
    pub(super) fn decide(&mut self, index: usize) -> Result<Option<Step>, Error> {
        let Some(prepared) = self.window.get(self.cursor) else {
            return Ok(None);
        };
        let candidate = prepared.candidate;
        let mark = match candidate.fingerprint {
            Some(_) => self.found.get(self.answer).copied().flatten(),
            None => None,
        };
        let gap = self.open.at(candidate.offset);
        if candidate.offset < self.position.get() && gap.is_none() {
            self.pass(&candidate, mark)?;
            self.advance(&candidate);
            return Ok(None);
        }
        if self.is_for_its_key(&candidate, gap) {
            self.restore(&candidate, mark)?;
            self.advance(&candidate);
            return Ok(None);
        }
        if candidate.offset >= self.restore_until.get() && !self.restored()? {
            return Ok(Some(Step::Idle));
        }
        let failed = self.shared.has_failed();
        if failed || self.shared.is_restoring() && gap.is_none_or(|gap| !gap.forgotten) {
            // Its first may be in a stretch of another partition that is not read yet, or, after
            // a failure there, never will be.
            if !self.patience.is_zero() {
                self.context.stop.sleep(RESTORE_WAIT);
            }
            return Ok(Some(Step::Idle));
        }
        if self.context.stop.is_set() {
            // Looked at behind the restores: one of them may be over because its lane was stopped, and
            // then this one has been told before.
            return Ok(Some(Step::Stopped));
        }
        // Behind the gates above: they come back to the same record.
        let prepared = self.window.get_mut(self.cursor);
        let no_key = prepared.and_then(|prepared| prepared.no_key.take());
        if let Some(reason) = no_key {
            return self.keyless(index, candidate, reason).map(Some);
        }
        self.decide_by_key(index, candidate, mark)
    }

    fn decide_by_key(
        &mut self,
        index: usize,
        candidate: Candidate,
        mark: Option<Mark>,
    ) -> Result<Option<Step>, Error> {
        let id = self.ledger.lease().id;
        let look = match mark.filter(|mark| answers_for(mark, id, candidate.offset)) {
            Some(mark) => self.ledger.known(&candidate, mark, true),
            None => self.ledger.claim(&candidate, self.looked_at)?,
        };
        let batch = self.batch.as_deref();
        let (candidate, look) = self.unless_letter(candidate, look, batch, index)?;
        Ok(match look {
            Look::New => {
                let work = self.hand_out(index, candidate, Decision::New);
                Some(work.map_or(Step::Stopped, Step::Work))
            }
            Look::Known {
                decision,
                mark,
                durable,
            } => {
                let errand = match self.copy(&candidate, decision, mark, durable)? {
                    Copied::NotYet => return Ok(None),
                    Copied::Passed => {
                        self.advance(&candidate);
                        return Ok(None);
                    }
                    Copied::ToShow(result) => Errand::Show(result),
                    Copied::ToBury(error) => {
                        self.take_in(&candidate);
                        Errand::Bury(Reason::Mismatch, Box::new(error))
                    }
                };
                let work = self.work(index, candidate, decision, errand);
                self.advance(&candidate);
                Some(work.map_or(Step::Stopped, Step::Work))
            }
            Look::Busy if self.is_in_order() => {
                // Its holder may itself wait for one of ours: those must become durable first.
                self.ledger.urge();
                // Not forever: a stop must be noticed, and then the record is left for later.
                let _free = self.ledger.wait_free(&candidate, READ_WAIT);
                None
            }
            Look::Busy => {
                let work = self.hand_out(index, candidate, Decision::New);
                // Its key is its first's: giving this one back must not free it.
                let claimed = false;
                let park = |work| Step::Parked(Work { claimed, ..work });
                Some(work.map_or(Step::Stopped, park))
            }
        })
    }

    pub(in crate::pipeline) fn has_failed(&self) -> bool {
        self.shared.has_failed()
    }

    /// Whether handlers may be begun: not while keys are missing, or after a failure.
    pub(in crate::pipeline) fn may_begin(&self) -> bool {
        !self.has_failed() && !self.shared.is_restoring()
    }

    fn is_in_order(&self) -> bool {
        let settings = &self.context.settings;
        settings.ordering == Ordering::Partition && !settings.transacts
    }

    /// Whether somebody else has handled the record, so that it is read for its key alone.
    fn is_for_its_key(&self, candidate: &Candidate, gap: Option<Gap>) -> bool {
        match gap {
            // Forgotten on purpose, to be done again.
            Some(gap) if gap.forgotten => false,
            // Left undone here, and committed since: by whoever had the partition then.
            Some(_) => candidate.offset < self.committed.get(),
            None => candidate.offset < self.restore_until.get(),
        }
    }

    pub(super) fn advance(&mut self, candidate: &Candidate) {
        self.cursor += 1;
        if candidate.fingerprint.is_some() {
            self.answer += 1;
        }
        self.read_to = NextOffset::after(candidate.offset);
    }

    /// Takes a new record in, and moves behind it. `None` only where its batch is gone: a bug.
    pub(super) fn hand_out(
        &mut self,
        index: usize,
        candidate: Candidate,
        decision: Decision,
    ) -> Option<Work> {
        let forgotten = self
            .open
            .at(candidate.offset)
            .is_some_and(|gap| gap.forgotten);
        self.take_in(&candidate);
        let work = self.work(index, candidate, decision, Errand::Handle);
        if !forgotten {
            self.doubt.step(candidate.offset);
        }
        self.advance(&candidate);
        work
    }

    /// From here on the record is this lane's to settle, whatever is settled behind it.
    pub(super) fn take_in(&mut self, candidate: &Candidate) {
        let below = candidate.offset < self.position.get();
        if below || !self.is_in_order() {
            self.ledger.hold(candidate);
        }
        self.open.close_below(candidate.offset.saturating_add(1));
        self.taken += 1;
        self.settled(candidate);
    }

    /// The record under the cursor, with what is to be done about it.
    pub(super) fn work(
        &self,
        index: usize,
        candidate: Candidate,
        decision: Decision,
        errand: Errand,
    ) -> Option<Work> {
        let batch = Arc::clone(self.batch.as_ref()?);
        let in_doubt = candidate.over_restored || self.doubt.covers(candidate.offset);
        Some(Work {
            index,
            batch,
            candidate,
            decision,
            in_doubt,
            claimed: true,
            errand,
            origin: self.window.get(self.cursor)?.origin.clone(),
            order: self.taken,
        })
    }

    /// A record below the position: settled in this lease or before it. That it was is not taken on
    /// trust: its key must be known, and the last record settled must be the same as then.
    pub(super) fn pass(&mut self, candidate: &Candidate, mark: Option<Mark>) -> Result<(), Error> {
        let head = self.ledger.lease().head;
        let anchor = head.and_then(|head| head.anchor);
        let is_anchor = anchor.is_some_and(|anchor| anchor.offset == candidate.offset);
        if self.asked_for != Some(candidate.offset) {
            self.counts.add(Decision::Redelivery);
        }
        for known in [anchor, self.last].into_iter().flatten() {
            if known.offset == candidate.offset && !candidate.is_at(&known) {
                return Err(self.changed(format!(
                    "the record at offset {} is another than the one that was handled",
                    candidate.offset
                )));
            }
        }
        let unknown = mark.is_none() && !is_anchor && !self.is_own(candidate)?;
        if unknown && !self.may_have_expired(candidate)? {
            return Err(self.changed(format!(
                "the record at offset {} lies below what the store counts as done, but its key is \
                 not known: the store began behind it, or this is another topic",
                candidate.offset
            )));
        }
        if let (true, Some(head)) = (is_anchor, head) {
            // The topic is the same, so the head holds: without news of it a group that was
            // set back would show lag until the next new record. Not above what is left undone.
            let partition = self.partition().clone();
            let next = self.undone_at_start.unwrap_or(head.next);
            self.shared.committed(vec![Committed { partition, next }]);
        }
        Ok(())
    }

    /// Whether a record without a mark is in flight, here or elsewhere, or has no key at all.
    fn is_own(&self, candidate: &Candidate) -> Result<bool, Error> {
        match self.ledger.look(candidate)? {
            Look::Known { .. } | Look::Busy => Ok(true),
            Look::New => {
                self.ledger.release(candidate);
                Ok(candidate.fingerprint.is_none())
            }
        }
    }
}
