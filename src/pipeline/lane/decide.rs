//! What becomes of a record: passed over, restored, refused, or handed out.

use std::sync::Arc;

use super::restore::RESTORE_WAIT;
use super::{Lane, READ_WAIT, Step, Work};
use crate::claim::Decision;
use crate::engine::{Candidate, Committed, Look};
use crate::error::Error;
use crate::key::{MissingKey, NoIdentity};
use crate::pipeline::settings::Mismatch;
use crate::record::{Coordinates, NextOffset};
use crate::store::Mark;

impl Lane {
    /// Decides about the record under the cursor and moves the cursor behind it.
    pub(super) fn decide(&mut self, index: usize) -> Result<Option<Step>, Error> {
        let Some(prepared) = self.window.get_mut(self.cursor) else {
            return Ok(None);
        };
        let (candidate, no_key) = (prepared.candidate, prepared.no_key.take());
        let mark = match candidate.fingerprint {
            Some(_) => self.found.get(self.answer).copied().flatten(),
            None => None,
        };
        if candidate.offset < self.position.get() {
            self.pass(&candidate)?;
            self.advance(&candidate);
            return Ok(None);
        }
        if candidate.offset < self.restore_until.get() {
            self.restore(&candidate, mark)?;
            self.advance(&candidate);
            return Ok(None);
        }
        if !self.restored() {
            return Ok(None);
        }
        if self.shared.is_restoring() {
            // Its first may be in a stretch of another partition that is not read yet.
            self.stop.sleep(RESTORE_WAIT);
            return Ok(None);
        }
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
        let in_doubt = self.doubt.now();
        Some(Work {
            index,
            batch,
            candidate,
            decision,
            attempt: 1,
            in_doubt,
        })
    }

    /// A record below the position: settled in this lease or before it. The last one below the
    /// head proves that the topic is still the same.
    pub(super) fn pass(&mut self, candidate: &Candidate) -> Result<(), Error> {
        self.counts.add(Decision::Redelivery);
        let head = self.ledger.lease().head;
        let next = head.map_or(NextOffset::ZERO, |head| head.next);
        match head.and_then(|head| head.anchor) {
            Some(anchor) if anchor.offset != candidate.offset => Ok(()),
            Some(anchor) if candidate.is_at(&anchor) => {
                // The topic is the same, so the head holds: without news of it a group that was
                // set back would show lag until the next new record.
                let partition = self.partition().clone();
                self.shared.committed(vec![Committed { partition, next }]);
                Ok(())
            }
            Some(_) => Err(self.changed(format!(
                "the record at offset {} is another than the one that was handled",
                candidate.offset
            ))),
            None => Ok(()),
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
            self.wait_clean();
            return Ok(None);
        }
        let result = match (self.shows_copies, candidate.fingerprint) {
            (true, Some(key)) => self.ledger.engine().store().result(&key, &mark)?,
            _ => None,
        };
        self.advance(&candidate);
        self.ledger.skip(&candidate)?;
        self.position = NextOffset::after(candidate.offset);
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
