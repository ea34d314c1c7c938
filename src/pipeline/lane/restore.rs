//! Reading a stretch for its keys, where the group is ahead of the store.

use std::time::{Duration, Instant};

use super::Lane;
use crate::claim::answers_for;
use crate::engine::{Candidate, Wait};
use crate::error::Error;
use crate::pipeline::settings::{Restore, RestoreProgress};
use crate::record::NextOffset;
use crate::store::Mark;

/// How often it is asked whether another partition's restore is over.
pub(super) const RESTORE_WAIT: Duration = Duration::from_millis(5);
/// How long a silent partition is waited for before its end is asked for: several of librdkafka's
/// fetches, each of which the broker answers within half a second.
const RESTORE_SILENCE: Duration = Duration::from_secs(3);
/// After so many of them there is nothing to come, although the partition goes on: behind the last
/// record lie transaction markers, or aborted transactions alone. More would have come by now.
const RESTORE_SILENCES: u32 = 4;
/// How often a restore says how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// How far a restore has come.
#[derive(Default)]
pub(super) struct Progress {
    from: Option<NextOffset>,
    keys: u64,
    said_at: Option<Instant>,
    /// Since when no record has come.
    silent_since: Option<Instant>,
    /// How many silences the broker has answered in, one after the other.
    silences: u32,
}

impl Lane {
    /// A record that somebody else has handled: its key counts as done.
    pub(super) fn restore(
        &mut self,
        candidate: &Candidate,
        mark: Option<Mark>,
    ) -> Result<(), Error> {
        self.say_progress(NextOffset::after(candidate.offset - 1), false);
        if self.open.at(candidate.offset).is_some() {
            self.take_in(candidate);
        } else {
            self.settled(candidate);
        }
        self.counts.restored += 1;
        let ignored = self.context.settings.restore == Restore::Ignore;
        // A dead letter's mark stands for its own record: another member may have done this one.
        let id = self.ledger.lease().id;
        let known =
            mark.is_some_and(|mark| mark.forgotten || answers_for(&mark, id, candidate.offset));
        if ignored || known || candidate.fingerprint.is_none() {
            return Ok(self.ledger.skip(candidate)?);
        }
        self.progress.keys += 1;
        Ok(self.ledger.mark_only(candidate).map(drop)?)
    }

    /// Tells how far the restore is: in the log, and whoever asked to be told.
    fn say_progress(&mut self, at: NextOffset, done: bool) {
        let from = *self.progress.from.get_or_insert(at);
        let said_at = self.progress.said_at.get_or_insert_with(Instant::now);
        if !done && said_at.elapsed() < PROGRESS_EVERY {
            return;
        }
        *said_at = Instant::now();
        let progress = RestoreProgress {
            partition: self.partition().clone(),
            from,
            at,
            to: self.restore_until,
            keys: self.progress.keys,
            done,
        };
        tracing::info!(
            partition = %progress.partition, from = %from, at = %at, to = %progress.to,
            keys = progress.keys, done, "reading the topic for keys that the store does not know"
        );
        if let Some(hook) = &self.context.settings.on_restore {
            hook(&progress);
        }
    }

    /// Ends the restore, if one is under way; says whether it is over. Its keys must be durable
    /// first: only then does a look-up find them.
    pub(super) fn restored(&mut self) -> Result<bool, Error> {
        if self.restoring.is_some() {
            self.wait_clean()?;
            if self.ledger.wait_clean(Duration::ZERO) != Wait::Done {
                // A stop: nothing is decided any more.
                self.context.stop.sleep(RESTORE_WAIT);
                return Ok(false);
            }
            self.say_progress(self.read_to.max(self.position), true);
            self.restoring = None;
        }
        Ok(true)
    }

    /// Whether nothing is left to be restored. A gap before the committed offset (a transaction
    /// marker, compaction) never comes as a record, and no partition is handled while one of them
    /// is being restored: so a silence ends it too, where the group stands at the partition's end.
    pub(super) fn has_reached_restored(&mut self, empty: bool) -> bool {
        if self.read_to >= self.restore_until {
            return true;
        }
        if !empty {
            self.progress.silences = 0;
            self.progress.silent_since = None;
            return false;
        }
        let since = *self.progress.silent_since.get_or_insert_with(Instant::now);
        if since.elapsed() < RESTORE_SILENCE {
            return false;
        }
        self.progress.silent_since = None;
        // The answer also says that the broker can be reached: else its silence means nothing.
        let Ok((low, high)) = self.reader.watermarks() else {
            self.progress.silences = 0;
            return false;
        };
        self.progress.silences += 1;
        high <= self.restore_until
            || low >= self.restore_until
            || self.progress.silences >= RESTORE_SILENCES
    }
}
