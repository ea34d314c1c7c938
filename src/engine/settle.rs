//! How a record enters the unit under way.

use super::open_unit::{Fill, Settled, Unsettled, entry_bytes};
use super::{Candidate, Ledger};
use crate::outbox::Outgoing;
use crate::store::{Entry, StoreError};

/// What a handler left beside the mark.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) result: Option<Box<[u8]>>,
    pub(crate) outbox: Vec<Outgoing>,
}

/// How a record leaves the ledger.
pub(super) enum Settle {
    Done(Recorded),
    DeadLettered,
    Restored,
    Skipped,
}

impl Settle {
    /// What its entry takes in a unit, if it has one.
    pub(super) fn bytes_max(&self) -> usize {
        match self {
            Self::Done(recorded) => entry_bytes(recorded.result.as_deref()),
            Self::DeadLettered | Self::Restored => entry_bytes(None),
            Self::Skipped => 0,
        }
    }
}

impl Ledger {
    pub(super) fn settle(
        &mut self,
        candidate: &Candidate,
        how: Settle,
    ) -> Result<Fill, StoreError> {
        if self.wake.is_none() && !self.open.has_room(&how) {
            // Nobody else would, and a store refuses a unit that is too long.
            self.commit_own()?;
        }
        self.enter(candidate, how)
    }

    /// As `settle`, whatever the unit's length.
    pub(super) fn enter(&mut self, candidate: &Candidate, how: Settle) -> Result<Fill, StoreError> {
        self.start(candidate);
        let dead_lettered = matches!(how, Settle::DeadLettered);
        let restored = matches!(how, Settle::Restored);
        let (effect, mark, Recorded { result, outbox }) = match how {
            Settle::Done(recorded) => (true, true, recorded),
            // A letter is an effect too: without its mark it would be written again.
            Settle::DeadLettered => (true, true, Recorded::default()),
            Settle::Restored => (false, true, Recorded::default()),
            Settle::Skipped => (false, false, Recorded::default()),
        };
        let entry = candidate
            .fingerprint
            .filter(|_| mark)
            .map(|fingerprint| Entry {
                fingerprint,
                offset: candidate.offset,
                value_digest: candidate.value_digest,
                result,
                dead_lettered,
                forgotten: false,
                restored,
            });
        let settled = Settled {
            offset: candidate.offset,
            timestamp_ms: candidate.timestamp_ms,
            anchor_digest: candidate.anchor_digest(),
            entry,
            outbox,
            effect,
        };
        let fill = match self.open.settle(settled, self.wake.as_deref()) {
            Ok(fill) => fill,
            Err(why) => return Err(self.unsettled(candidate, effect, why)),
        };
        // Once it is settled: the claim of a letter that comes too late stands for its record, and is
        // found again by it.
        if let (true, Some(key)) = (dead_lettered, &candidate.fingerprint) {
            let claims = self.engine.shared.claims();
            claims.dead_letter(key, self.open.holder());
        }
        self.call(fill);
        Ok(fill)
    }

    /// What a refused record means, and what becomes of its key.
    fn unsettled(&self, candidate: &Candidate, effect: bool, why: Unsettled) -> StoreError {
        let happened = effect && self.engine.shared.happens_at_once(&self.open);
        match &candidate.fingerprint {
            // It happened, and its mark will not come: no copy may be handled for that. What is
            // committed together with its mark has not.
            Some(key) if happened => {
                let claims = self.engine.shared.claims();
                claims.orphan(key, self.open.holder());
            }
            _ if why == Unsettled::Closed => self.release(candidate),
            _ => {}
        }
        match why {
            Unsettled::Closed => self.fenced(),
            Unsettled::BelowHead => StoreError::Misused(
                "a record below one that was settled before: records are settled in the order of \
                 their offsets, each once",
            ),
        }
    }
}
