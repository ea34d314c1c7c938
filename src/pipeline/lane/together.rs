//! What a lane does where the store commits marks together with what the handlers write.

use super::Lane;
use crate::engine::{Prepared, Recorded};
use crate::pipeline::work::Work;
use crate::store::{Lease, StoreError};

impl Lane {
    pub(in crate::pipeline) fn lease(&self) -> &Lease {
        self.ledger.lease()
    }

    /// The unit of records that were handled in one transaction.
    pub(in crate::pipeline) fn prepare<'a>(
        &mut self,
        done: impl Iterator<Item = (&'a Work, Recorded)>,
    ) -> Result<Prepared, StoreError> {
        let done = done.map(|(work, recorded)| (work.candidate, recorded));
        self.ledger.prepare(done.collect())
    }

    /// The unit is written, and these records with it; the first after so many failed attempts.
    pub(in crate::pipeline) fn written<'a>(
        &mut self,
        prepared: &Prepared,
        done: impl Iterator<Item = &'a Work>,
        retried: u32,
    ) {
        self.counts.retried += u64::from(retried);
        for work in done {
            self.counts.add(work.decision);
            self.handled(work);
        }
        let committed = self.ledger.written(prepared);
        self.shared.committed(vec![committed]);
        self.shared.count(&mut self.counts);
    }

    /// Nothing of the unit remains.
    pub(in crate::pipeline) fn take_back(&self, prepared: Prepared) {
        self.ledger.take_back(prepared);
    }
}
