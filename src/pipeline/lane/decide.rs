//! What becomes of a record: passed over, restored, refused, or handed out.

use std::sync::Arc;

use super::restore::RESTORE_WAIT;
use super::{Lane, READ_WAIT, Step, Work};
use crate::claim::Decision;
use crate::engine::{Candidate, Committed, Look};
use crate::error::Error;
use crate::key::{MissingKey, NoIdentity};
use crate::pipeline::settings::Mismatch;
use crate::record::Coordinates;
use crate::store::Mark;

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
        if candidate.offset < self.position.get() {
            self.pass(&candidate, mark)?;
            self.advance(&candidate);
            return Ok(None);
        }
        if candidate.offset < self.restore_until.get() {
            self.restore(&candidate, mark)?;
            self.advance(&candidate);
            return Ok(None);
        }
        if !self.restored()? {
            return Ok(None);
        }
        if self.shared.is_restoring() || self.shared.has_failed() {
            // Its first may be in a stretch of another partition that is not read yet, or, after
            // a failure there, never will be.
            self.stop.sleep(RESTORE_WAIT);
            return Ok(None);
        }
        // Behind the gates above: they come back to the same record.
        let no_key = self
            .window
            .get_mut(self.cursor)
            .and_then(|prepared| prepared.no_key.take());
        if let Some(reason) = no_key {
            return self.keyless(index, candidate, reason).map(Some);
        }
        let look = match mark {
            Some(mark) => self.ledger.known(&candidate, mark, true),
            None => self.ledger.claim(&candidate, self.looked_at)?,
        };
        match look {
            Look::New => {
                self.advance(&candidate);
                Ok(self.work(index, candidate, Decision::New).map(Step::Handle))
            }
            Look::Known {
                decision,
                mark,
                durable,
            } => self.copy(index, candidate, decision, mark, durable),
            Look::Busy => {
                // Its holder may itself wait for one of ours: those must become durable first.
                self.ledger.urge();
                // Not forever: a stop must be noticed, and then the record is left for later.
                let _free = self.ledger.wait_free(&candidate, READ_WAIT);
                Ok(None)
            }
        }
    }

    pub(super) fn advance(&mut self, candidate: &Candidate) {
        self.cursor += 1;
        if candidate.fingerprint.is_some() {
            self.answer += 1;
        }
    }

    pub(super) fn work(
        &self,
        index: usize,
        candidate: Candidate,
        decision: Decision,
    ) -> Option<Work> {
        let batch = Arc::clone(self.batch.as_ref()?);
        let in_doubt = self.doubt.covers(candidate.offset);
        Some(Work {
            index,
            batch,
            candidate,
            decision,
            attempt: 1,
            in_doubt,
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
        if mark.is_none() && !is_anchor && !self.is_own(candidate)? {
            return Err(self.changed(format!(
                "the record at offset {} lies below what the store counts as done, but its key is \
                 not known: the store began behind it, or this is another topic",
                candidate.offset
            )));
        }
        if let (true, Some(head)) = (is_anchor, head) {
            // The topic is the same, so the head holds: without news of it a group that was set
            // back would show lag until the next new record.
            let partition = self.partition().clone();
            self.shared.committed(vec![Committed {
                partition,
                next: head.next,
            }]);
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

    pub(super) fn keyless(
        &mut self,
        index: usize,
        candidate: Candidate,
        reason: NoIdentity,
    ) -> Result<Step, Error> {
        match self.settings.missing_key {
            MissingKey::PassThrough => {
                self.advance(&candidate);
                let work = self.work(index, candidate, Decision::MissingKey);
                Ok(work.map_or(Step::Stopped, Step::Handle))
            }
            MissingKey::Reject => Err(Error::MissingKey {
                at: self.coordinates(candidate.offset),
                source: reason,
            }),
        }
    }

    /// A record whose key is known: passed over, as far as the policy allows.
    pub(super) fn copy(
        &mut self,
        index: usize,
        candidate: Candidate,
        decision: Decision,
        mark: Mark,
        durable: bool,
    ) -> Result<Option<Step>, Error> {
        if decision == Decision::Mismatch && self.settings.mismatch == Mismatch::Stop {
            let heads = self.ledger.engine().store().heads();
            let first = heads
                .get(mark.id.0 as usize)
                .map_or(self.partition(), |(name, _)| name);
            return Err(Error::Mismatch {
                at: self.coordinates(candidate.offset),
                first: Coordinates::new(first.clone(), mark.offset),
            });
        }
        if self.shows_copies && !durable {
            // An answer must not come from a mark that a crash could still undo.
            self.wait_clean()?;
            return Ok(None);
        }
        let result = match (self.shows_copies, candidate.fingerprint) {
            (true, Some(key)) => self.ledger.engine().store().result(&key, &mark)?,
            _ => None,
        };
        self.advance(&candidate);
        self.ledger.skip(&candidate)?;
        self.settled(&candidate);
        self.counts.add(decision);
        let shown = self
            .shows_copies
            .then(|| self.work(index, candidate, decision))
            .flatten();
        Ok(shown.map(|work| Step::Copy(work, result)))
    }

    pub(super) fn coordinates(&self, offset: i64) -> Coordinates {
        Coordinates::new(self.partition().clone(), offset)
    }
}
