//! What comes back from a handler, and the end of the lane.

use super::{Lane, READ_WAIT, Work};
use crate::engine::{UNIT_BYTES_MAX, Wait};
use crate::error::Error;
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
        self.position = NextOffset::after(work.candidate.offset);
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
            self.wait_clean();
        } else if fill.uncommitted >= max {
            self.ledger.urge();
            // A stop need not be waited for: no effect follows, and the end commits.
            while self.ledger.wait_uncommitted(max / 2, READ_WAIT) == Wait::TimedOut
                && !self.stop.is_set()
            {
                self.ledger.urge();
            }
        }
        Ok(())
    }

    pub(in crate::pipeline) fn retried(&mut self) {
        self.counts.retried += 1;
    }

    /// The record was not handled: its key is free again.
    pub(in crate::pipeline) fn release(&self, work: &Work) {
        self.ledger.release(&work.candidate);
    }

    /// Waits until all that was settled is durable or never will be, or until a stop.
    pub(super) fn wait_clean(&self) {
        self.ledger.urge();
        while self.ledger.wait_clean(READ_WAIT) == Wait::TimedOut && !self.stop.is_set() {
            self.ledger.urge();
        }
    }

    /// Ends the lane: commits what is left, and closes the lease in order.
    pub(in crate::pipeline) fn finish(mut self) -> Result<(), Error> {
        self.shared.count(&mut self.counts);
        // The reader first: nobody else may read the partition's queue while it is held.
        drop(self.reader);
        if let Some(committed) = self.ledger.finish()? {
            self.shared.committed(vec![committed]);
        }
        Ok(())
    }
}
