//! Records that are not simply new: their key is known, or waits for another, or is not there.

use super::{Lane, Step};
use crate::claim::Decision;
use crate::dead_letter::{Reason, origin};
use crate::engine::{Candidate, Look};
use crate::error::Error;
use crate::key::{MissingKey, NoIdentity};
use crate::pipeline::settings::Mismatch;
use crate::pipeline::work::{Errand, Work};
use crate::record::Coordinates;
use crate::source::Batch;
use crate::store::Mark;

/// What became of a record whose key is known.
pub(super) enum Copied {
    /// Nothing yet: its mark is not durable, and it is to be shown.
    NotYet,
    Passed,
    ToShow(Option<Vec<u8>>),
    /// It has another value.
    ToBury(Error),
}

impl Lane {
    /// A letter that comes back is tried, in doubt, where its key is known only because its very
    /// place was read for its keys: whoever was there may have done that record, or given it up.
    pub(super) fn unless_letter(
        &self,
        mut candidate: Candidate,
        look: Look,
        batch: Option<&dyn Batch>,
        index: usize,
    ) -> Result<(Candidate, Look), Error> {
        let known = match look {
            Look::Known { mark, .. } if mark.restored && self.context.replays => mark,
            _ => return Ok((candidate, look)),
        };
        let record = batch.and_then(|batch| batch.record(index));
        let first = record.as_ref().and_then(origin);
        if first.is_none_or(|first| first.place() != self.place_of(known)) {
            return Ok((candidate, look));
        }
        candidate.over_restored = true;
        let look = self.ledger.claim(&candidate, None)?;
        Ok((candidate, look))
    }

    /// Where the record of a mark lies.
    fn place_of(&self, mark: Mark) -> Coordinates {
        let heads = self.ledger.engine().store().heads();
        let name = heads.get(mark.id.0 as usize).map(|(name, _)| name);
        Coordinates::new(name.unwrap_or(self.partition()).clone(), mark.offset)
    }

    /// A parked record, looked at again: handed out, settled (`None`), or parked still.
    pub(in crate::pipeline) fn look_again(
        &mut self,
        mut work: Work,
    ) -> Result<Option<Step>, Error> {
        let look = self.ledger.claim(&work.candidate, None)?;
        let batch = Some(&*work.batch);
        let (candidate, look) = self.unless_letter(work.candidate, look, batch, work.index)?;
        work.candidate = candidate;
        work.in_doubt |= candidate.over_restored;
        let (decision, mark, durable) = match look {
            Look::Busy => {
                // Its holder may itself wait for one of ours: those must become durable first.
                self.urge_now_and_then();
                return Ok(Some(Step::Parked(work)));
            }
            Look::New => {
                work.claimed = true;
                return Ok(Some(Step::Work(work)));
            }
            Look::Known {
                decision,
                mark,
                durable,
            } => (decision, mark, durable),
        };
        Ok(match self.copy(&candidate, decision, mark, durable)? {
            Copied::NotYet => Some(Step::Parked(work)),
            Copied::Passed => None,
            Copied::ToShow(result) => {
                work.errand = Errand::Show(result);
                work.decision = decision;
                Some(Step::Work(work))
            }
            Copied::ToBury(error) => {
                work.errand = Errand::Bury(Reason::Mismatch, Box::new(error));
                work.decision = decision;
                Some(Step::Work(work))
            }
        })
    }

    pub(super) fn keyless(
        &mut self,
        index: usize,
        candidate: Candidate,
        reason: NoIdentity,
    ) -> Result<Step, Error> {
        match self.context.settings.missing_key {
            MissingKey::PassThrough => {
                let work = self.hand_out(index, candidate, Decision::MissingKey);
                Ok(work.map_or(Step::Stopped, Step::Work))
            }
            MissingKey::Reject => {
                let error = Error::MissingKey {
                    at: self.context.coordinates(candidate.offset),
                    source: reason,
                };
                if self.context.settings.letterbox.is_none() {
                    return Err(error);
                }
                self.take_in(&candidate);
                let errand = Errand::Bury(Reason::MissingKey, Box::new(error));
                let work = self.work(index, candidate, Decision::MissingKey, errand);
                self.advance(&candidate);
                Ok(work.map_or(Step::Stopped, Step::Work))
            }
        }
    }

    /// A record whose key is known: passed over, as far as the policy allows.
    pub(super) fn copy(
        &mut self,
        candidate: &Candidate,
        decision: Decision,
        mark: Mark,
        durable: bool,
    ) -> Result<Copied, Error> {
        let settings = &self.context.settings;
        let policy = settings.mismatch;
        if decision == Decision::Mismatch && policy != Mismatch::TreatAsDuplicate {
            let error = self.mismatch(candidate, mark);
            return if policy == Mismatch::DeadLetter && settings.letterbox.is_some() {
                Ok(Copied::ToBury(error))
            } else {
                Err(error)
            };
        }
        if self.shows_copies && !durable {
            // An answer must not come from a mark that a crash could still undo.
            self.wait_clean()?;
            return Ok(Copied::NotYet);
        }
        let result = match (self.shows_copies, candidate.fingerprint) {
            (true, Some(key)) => self.ledger.engine().store().result(&key, &mark)?,
            _ => None,
        };
        if self.open.at(candidate.offset).is_some() {
            self.take_in(candidate);
        }
        self.skip(candidate, decision)?;
        Ok(if self.shows_copies {
            Copied::ToShow(result)
        } else {
            Copied::Passed
        })
    }

    fn mismatch(&self, candidate: &Candidate, mark: Mark) -> Error {
        Error::Mismatch {
            at: self.context.coordinates(candidate.offset),
            first: self.place_of(mark),
        }
    }
}
