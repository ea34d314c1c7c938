//! A store that forgets, and one that is full.

use super::{Lane, READ_WAIT};
use crate::engine::Candidate;
use crate::error::Error;
use crate::record::NextOffset;
use crate::store::PartitionId;

impl Lane {
    /// Whether nothing new is to be taken in. What is in hand goes on.
    pub(super) fn is_held_up(&mut self) -> bool {
        let paused = self.shared.room().is_paused();
        if paused {
            // All of it is decided about: nothing is prepared twice.
            (self.cursor, self.answer) = (0, 0);
            if !self.patience.is_zero() {
                self.context.stop.sleep(READ_WAIT);
            }
        }
        paused
    }

    /// Whether the key of a record below the position may have been dropped on purpose.
    ///
    /// Its own mark, or, since it may be a copy, that of its first, which was anywhere. So once
    /// anything has expired an unknown key shows no other topic any more, and the anchor alone does.
    /// But what lies before the beginning of the store was never known to it.
    pub(super) fn may_have_expired(&mut self, candidate: &Candidate) -> Result<bool, Error> {
        if self.forgets_from.is_none() {
            self.forgets_from = self.look_for_expired()?;
        }
        let from = self.forgets_from;
        Ok(from.is_some_and(|from| candidate.offset >= from.get()))
    }

    /// Where the partition's log began, if anything has expired at all.
    fn look_for_expired(&self) -> Result<Option<NextOffset>, Error> {
        let (id, store) = (self.ledger.lease().id, self.ledger.engine().store());
        let Some(retaining) = store.retaining() else {
            let known = (0..).map(PartitionId).take(store.heads().len());
            let from = known.map(|id| store.retained_from(id)).max();
            return Ok(from
                .filter(|from| *from > NextOffset::ZERO)
                .map(|_| NextOffset::ZERO));
        };
        let list = retaining.retained()?;
        let any = list.iter().any(|one| one.from > one.began);
        let own = list.iter().find(|one| one.id == id);
        Ok(own.filter(|_| any).map(|own| own.began))
    }
}
