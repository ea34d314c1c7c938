//! What becomes of a record that was handed out, and how a lane ends.

use std::time::{Duration, Instant};

use super::{Lane, READ_WAIT, URGE_EVERY};
use crate::claim::Decision;
use crate::engine::{Candidate, Fill, Recorded, Wait};
use crate::error::Error;
use crate::pipeline::work::{Finished, Outcome, Work};
use crate::record::NextOffset;

impl Lane {
    /// A record has been seen through. `false` where nothing is handed out any more.
    pub(in crate::pipeline) fn finished(&mut self, finished: Finished) -> Result<bool, Error> {
        let Finished {
            work,
            outcome,
            retried,
            unclear,
        } = finished;
        self.counts.retried += retried;
        match outcome {
            Outcome::Done(recorded) => self.done(&work, recorded).map(|()| true),
            Outcome::Buried => self.buried(&work).map(|()| true),
            Outcome::Shown => Ok(true),
            Outcome::Released => {
                self.unclear |= unclear;
                self.release(&work);
                Ok(false)
            }
            Outcome::Failed(error) => {
                self.unclear |= unclear;
                self.release(&work);
                Err(*error)
            }
        }
    }

    /// A record was not handled: its key is free again.
    pub(in crate::pipeline) fn release(&self, work: &Work) {
        if work.is_claimed() {
            self.ledger.release(&work.candidate);
        }
    }

    /// Behind the highest record that was settled.
    pub(in crate::pipeline) fn settled_to(&self) -> NextOffset {
        self.ledger.settled_to()
    }

    /// The effect has happened.
    pub(in crate::pipeline) fn done(
        &mut self,
        work: &Work,
        recorded: Recorded,
    ) -> Result<(), Error> {
        let fill = self.ledger.done_fill(&work.candidate, recorded)?;
        self.settled(&work.candidate);
        self.counts.add(work.decision);
        self.handled(work);
        self.make_room(fill)
    }

    /// The letter is written. Where the record was to be handled, its key is marked so that only
    /// its own redelivery is passed over.
    fn buried(&mut self, work: &Work) -> Result<(), Error> {
        self.counts.dead_lettered += 1;
        if !work.is_claimed() {
            if work.decision == Decision::Mismatch {
                self.counts.add(work.decision);
            }
            return self.pass_over(&work.candidate);
        }
        let fill = self.ledger.dead_lettered_fill(&work.candidate)?;
        self.settled(&work.candidate);
        self.handled(work);
        self.make_room(fill)
    }

    /// Returns when another effect may happen: at most so many are uncommitted.
    fn make_room(&mut self, fill: Fill) -> Result<(), Error> {
        if self.context.settings.transacts {
            return self.commit_own();
        }
        let max = self.context.settings.uncommitted_records_max;
        let unsynced_max = self.context.settings.unsynced_records_max;
        let mut at_risk = fill.at_risk;
        if unsynced_max > max && (at_risk == max.div_ceil(2) || at_risk >= max) {
            at_risk = self.ledger.journal();
        }
        if at_risk == max.div_ceil(2) || fill.open == unsynced_max.div_ceil(2) {
            // Half is written while the other half is filled.
            self.ledger.urge();
        }
        if at_risk >= max || fill.uncommitted >= unsynced_max {
            self.ledger.urge();
            // A stop need not be waited for: no effect follows, and the end commits.
            loop {
                match self.ledger.wait_safe(max / 2, unsynced_max / 2, READ_WAIT) {
                    // No effect may follow one whose mark cannot be written.
                    Wait::Closed => return Err(self.ledger.fenced().into()),
                    Wait::TimedOut if !self.context.stop.is_set() => self.ledger.urge(),
                    Wait::TimedOut | Wait::Done => break,
                }
            }
        }
        Ok(())
    }

    pub(super) fn handled(&mut self, work: &Work) {
        if work.in_doubt {
            self.counts.in_doubt += 1;
        }
    }

    /// A record has been decided about for good.
    pub(super) fn settled(&mut self, candidate: &Candidate) {
        let behind = NextOffset::after(candidate.offset);
        if behind >= self.position {
            self.position = behind;
            self.last = Some(candidate.anchor());
        }
    }

    /// Records that are handed out may take effect while so many others are not kept, and have no
    /// durable mark yet.
    pub(in crate::pipeline) fn has_room_beside(&mut self, under_way: usize) -> bool {
        let settings = &self.context.settings;
        let (at_risk, uncommitted) = self.ledger.unmarked();
        let has_room = under_way + at_risk < settings.uncommitted_records_max
            && under_way + uncommitted < settings.unsynced_records_max;
        if !has_room && uncommitted > 0 {
            self.urge_now_and_then();
        }
        has_room
    }

    /// Has what is settled committed, but not at every turn: each commit is a sync of the device.
    pub(super) fn urge_now_and_then(&mut self) {
        if self.urged_at.elapsed() >= URGE_EVERY {
            self.urged_at = Instant::now();
            self.ledger.urge();
        }
    }

    /// Something that was under way ended without saying whether its effect happened.
    pub(in crate::pipeline) fn unclear(&mut self) {
        self.unclear = true;
    }

    /// Waits until something has become durable, or nothing will any more.
    pub(in crate::pipeline) async fn more_durable(&self) {
        self.ledger.changed().await;
    }

    /// Waits until all that was settled is durable, or until a stop.
    pub(super) fn wait_clean(&self) -> Result<(), Error> {
        if self.context.settings.transacts {
            return self.commit_own();
        }
        self.ledger.urge();
        loop {
            match self.ledger.wait_clean(READ_WAIT) {
                Wait::Closed => return Err(self.ledger.fenced().into()),
                Wait::TimedOut if !self.context.stop.is_set() => self.ledger.urge(),
                Wait::TimedOut | Wait::Done => return Ok(()),
            }
        }
    }

    /// Commits what was settled, where nobody else does.
    pub(in crate::pipeline) fn commit_own(&self) -> Result<(), Error> {
        let committed = self.ledger.commit_own()?;
        if self.ledger.wait_clean(Duration::ZERO) == Wait::Closed {
            return Err(self.ledger.fenced().into());
        }
        self.shared.committed(committed.into_iter().collect());
        Ok(())
    }

    /// A copy is passed over.
    pub(super) fn skip(&mut self, candidate: &Candidate, decision: Decision) -> Result<(), Error> {
        self.counts.add(decision);
        self.pass_over(candidate)
    }

    fn pass_over(&mut self, candidate: &Candidate) -> Result<(), Error> {
        self.ledger.skip(candidate)?;
        self.settled(candidate);
        Ok(())
    }

    /// Ends the lane: commits what is left, and closes the lease in order.
    pub(in crate::pipeline) fn finish(mut self) -> Result<(), Error> {
        self.shared.count(&mut self.counts);
        // The reader first: nobody else may read the partition's queue while it is held.
        drop(self.reader);
        let in_doubt = self.unclear || self.doubt.is_open(self.ledger.unfinished());
        let committed = if in_doubt {
            // A record may have taken effect without a mark: the next lease is in doubt.
            self.ledger.finish_in_doubt()?
        } else {
            self.ledger.finish()?
        };
        if let Some(committed) = committed {
            self.shared.committed(vec![committed]);
        }
        Ok(())
    }
}
