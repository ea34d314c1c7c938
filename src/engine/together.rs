//! Commits that the store makes together with what the handlers wrote.

use std::time::Instant;

use super::open_unit::Before;
use super::settle::{Recorded, Settle};
use super::{Candidate, Committed, Ledger};
use crate::metrics;
use crate::store::{CommitUnit, StoreError};

/// A unit on its way to the store, with what is put back where it does not get there.
pub(crate) struct Prepared {
    pub(crate) unit: CommitUnit,
    before: Before,
    effects: usize,
    begun: Instant,
}

impl Ledger {
    /// The unit of records that were handled in one transaction, with what was passed over since the
    /// last. Their claims stay until it is [written](Ledger::written).
    ///
    /// # Errors
    /// [`StoreError::Fenced`] where the lease is over; then nothing has changed.
    pub(crate) fn prepare(
        &mut self,
        done: Vec<(Candidate, Recorded)>,
    ) -> Result<Prepared, StoreError> {
        let before = self.open.before();
        for (candidate, recorded) in done {
            if let Err(error) = self.enter(&candidate, Settle::Done(recorded)) {
                self.open.put_back(before);
                return Err(error);
            }
        }
        let Some((unit, effects)) = self.open.take(self.engine.store()) else {
            self.open.put_back(before);
            return Err(self.fenced());
        };
        Ok(Prepared {
            unit,
            before,
            effects,
            begun: Instant::now(),
        })
    }

    /// The unit is durable.
    pub(crate) fn written(&self, prepared: &Prepared) -> Committed {
        let claims = self.engine.shared.claims();
        metrics::committed(1, prepared.begun.elapsed());
        // Between the index and the claims: whoever finds a claim gone must find the mark.
        claims.committed();
        let keys = prepared.unit.entries.iter();
        claims.release_all(keys.map(|entry| &entry.fingerprint), self.open.holder());
        self.open.hardened(prepared.effects);
        Committed {
            partition: self.partition().clone(),
            next: prepared.unit.position(),
        }
    }

    /// Nothing of the unit remains in the store: its records are as they were before.
    pub(crate) fn take_back(&self, prepared: Prepared) {
        self.open.put_back(prepared.before);
    }
}
