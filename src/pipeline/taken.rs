//! A partition between its offer and its assignment.

use super::shared::Restoring;
use crate::engine::Ledger;
use crate::record::NextOffset;
use crate::store::StoreError;

/// A partition that was offered and is not assigned yet.
pub(super) struct Taken {
    pub(super) ledger: Ledger,
    pub(super) committed: Option<NextOffset>,
    pub(super) restore_until: NextOffset,
    pub(super) asked_for: Option<i64>,
    pub(super) restoring: Option<Restoring>,
}

impl Taken {
    /// Ends a lease under which nothing was done: a doubt that it began with is the next one's.
    pub(super) fn give_back(self) -> Result<(), StoreError> {
        let ended = if self.ledger.lease().in_doubt {
            self.ledger.finish_in_doubt()
        } else {
            self.ledger.finish()
        };
        ended.map(drop)
    }
}
