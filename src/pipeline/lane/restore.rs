//! Reading a stretch for its keys, where the group is ahead of the store.

use std::time::{Duration, Instant};

use super::Lane;
use crate::engine::{Candidate, UNIT_BYTES_MAX, Wait};
use crate::error::Error;
use crate::store::Mark;

/// How often it is asked whether another partition's restore is over.
pub(super) const RESTORE_WAIT: Duration = Duration::from_millis(5);
/// How long a silent partition is waited for before its end is asked for: several of librdkafka's
/// fetches, each of which the broker answers within half a second.
const RESTORE_SILENCE: Duration = Duration::from_secs(3);

impl Lane {
    pub(super) fn restore(
        &mut self,
        candidate: &Candidate,
        mark: Option<Mark>,
    ) -> Result<(), Error> {
        self.settled(candidate);
        self.counts.restored += 1;
        if mark.is_some() || candidate.fingerprint.is_none() {
            return Ok(self.ledger.skip(candidate)?);
        }
        let fill = self.ledger.mark_only(candidate)?;
        if fill.bytes >= UNIT_BYTES_MAX {
            self.wait_clean()
        } else {
            Ok(())
        }
    }

    /// Ends the restore, if one is under way; says whether it is over. Its keys must be durable
    /// first: only then does a look-up find them.
    pub(super) fn restored(&mut self) -> Result<bool, Error> {
        if self.restoring.is_some() {
            self.wait_clean()?;
            if self.ledger.wait_clean(Duration::ZERO) != Wait::Done {
                // A stop: nothing is decided any more.
                self.stop.sleep(RESTORE_WAIT);
                return Ok(false);
            }
            self.restoring = None;
        }
        Ok(true)
    }

    /// Whether nothing is left to be restored. A gap before the committed offset (a transaction
    /// marker, compaction) never comes as a record, and no partition is handled while one of them
    /// is being restored: so a silence ends it too, where the group stands at the partition's end.
    pub(super) fn has_reached_restored(&mut self, empty: bool) -> bool {
        if self.position >= self.restore_until {
            return true;
        }
        if !empty {
            self.silent_since = None;
            return false;
        }
        let since = *self.silent_since.get_or_insert_with(Instant::now);
        if since.elapsed() < RESTORE_SILENCE {
            return false;
        }
        self.silent_since = None;
        // The answer also says that the broker can be reached: else its silence means nothing.
        self.reader
            .watermarks()
            .is_ok_and(|(_, high)| high <= self.restore_until)
    }
}
