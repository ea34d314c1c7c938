//! What comes back from a handler, and the end of the lane.

use super::{Lane, READ_WAIT, Work};
use crate::engine::{Candidate, UNIT_BYTES_MAX, Wait};
use crate::error::{BoxError, Error};
use crate::handler::Delivery;
use crate::record::{NextOffset, Record};

impl Lane {
    /// What a handler is shown of a record.
    pub(in crate::pipeline) fn delivery<'a>(
        &'a self,
        work: &Work,
        record: Record<'a>,
    ) -> Delivery<'a> {
        Delivery {
            record,
            attempt: work.attempt,
            in_doubt: work.in_doubt,
            recipe: &self.settings.recipe,
            hasher: self.ledger.hasher(),
        }
    }

    /// The effect has happened. Returns when another may: at most so many are uncommitted.
    pub(in crate::pipeline) fn done(
        &mut self,
        work: &Work,
        result: Option<Box<[u8]>>,
    ) -> Result<(), Error> {
        let fill = self.ledger.done_fill(&work.candidate, result)?;
        self.settled(&work.candidate);
        self.unclear = false;
        self.counts.add(work.decision);
        if work.in_doubt {
            self.counts.in_doubt += 1;
        }
        self.doubt.step();
        let max = self.settings.uncommitted_records_max;
        if fill.open == max.div_ceil(2) {
            // Half is written while the other half is filled.
            self.ledger.urge();
        }
        if fill.bytes >= UNIT_BYTES_MAX {
            return self.wait_clean();
        }
        if fill.uncommitted >= max {
            self.ledger.urge();
            // A stop need not be waited for: no effect follows, and the end commits.
            loop {
                match self.ledger.wait_uncommitted(max / 2, READ_WAIT) {
                    // No effect may follow one whose mark cannot be written.
                    Wait::Closed => return Err(self.ledger.fenced().into()),
                    Wait::TimedOut if !self.stop.is_set() => self.ledger.urge(),
                    Wait::TimedOut | Wait::Done => break,
                }
            }
        }
        Ok(())
    }

    /// A record has been decided about for good.
    pub(super) fn settled(&mut self, candidate: &Candidate) {
        self.position = NextOffset::after(candidate.offset);
        self.last = Some(candidate.anchor());
    }

    /// An attempt ended without saying whether its effect happened.
    pub(in crate::pipeline) fn unclear(&mut self) {
        self.unclear = true;
    }

    pub(in crate::pipeline) fn retried(&mut self) {
        self.counts.retried += 1;
    }

    /// The record was not handled: its key is free again.
    pub(in crate::pipeline) fn release(&self, work: &Work) {
        self.ledger.release(&work.candidate);
    }

    /// No attempt is left: the key is free again, and this is what ends the consumer.
    pub(in crate::pipeline) fn give_up(&self, work: &Work, source: BoxError) -> Error {
        self.release(work);
        Error::Handler {
            at: self.coordinates(work.candidate.offset),
            attempts: work.attempt,
            source,
        }
    }

    /// Waits until all that was settled is durable, or until a stop.
    pub(super) fn wait_clean(&self) -> Result<(), Error> {
        self.ledger.urge();
        loop {
            match self.ledger.wait_clean(READ_WAIT) {
                Wait::Closed => return Err(self.ledger.fenced().into()),
                Wait::TimedOut if !self.stop.is_set() => self.ledger.urge(),
                Wait::TimedOut | Wait::Done => return Ok(()),
            }
        }
    }

    /// Ends the lane: commits what is left, and closes the lease in order.
    pub(in crate::pipeline) fn finish(mut self) -> Result<(), Error> {
        self.shared.count(&mut self.counts);
        // The reader first: nobody else may read the partition's queue while it is held.
        drop(self.reader);
        let committed = if self.unclear || self.doubt.is_open() {
            // The record in hand may have taken effect: the next lease is in doubt.
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
