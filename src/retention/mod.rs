//! How long keys are remembered, and who drops those that are not.

mod look;
mod shrink;
mod sweep;

use std::time::Duration;

pub use self::sweep::{Held, Sweeper, Swept};

/// What happens where a store holds as much as [`Retention`] allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtCap {
    /// No new record is handled until expiry has made room, or the cap is raised: no key is dropped
    /// before its time. The membership in the group stays. The default.
    ///
    /// A partition's time stands still while nothing of it is handled, so where the keys of the
    /// whole [duration](Retention::for_duration) do not fit below the cap, this lasts.
    #[default]
    Pause,
    /// The oldest keys are dropped before their time: what comes again of them is handled again.
    ShrinkWindow,
}

/// Which keys a store keeps, and how many.
///
/// Whole commit records are dropped, from the front of each partition, oldest first. Nothing is
/// dropped that is not done below it, nor above what the group has committed.
///
/// *Time* is that of the records, partition by partition, so that a consumer that is behind, or
/// was stopped, forgets nothing meanwhile. A partition's clock stands where the last records of
/// three commits in a row agree that it is at least, never runs back, and never ahead of this
/// machine's clock: a record from the future moves nothing. A record without a time, or of before
/// 2001, counts as one of the moment of its commit. A key is kept for at least the duration
/// that is asked for, from its first record on; copies do not prolong it.
///
/// ```
/// use std::time::Duration;
/// use idempotent_consumer::{AtCap, Retention};
///
/// let week = Retention::for_duration(Duration::from_secs(7 * 24 * 3600));
/// let bounded = week.and_max_entries(100_000_000).at_cap(AtCap::ShrinkWindow);
/// assert_eq!(bounded.entries_max(), Some(100_000_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    keep: Option<Duration>,
    entries_max: Option<u64>,
    bytes_max: Option<u64>,
    at_cap: AtCap,
    sudden_percent_max: u8,
}

impl Default for Retention {
    /// [`Retention::unbounded`].
    fn default() -> Self {
        Self::unbounded()
    }
}

impl Retention {
    /// Every key is kept for ever. The default.
    #[must_use]
    pub const fn unbounded() -> Self {
        Self {
            keep: None,
            entries_max: None,
            bytes_max: None,
            at_cap: AtCap::Pause,
            sudden_percent_max: 50,
        }
    }

    /// Keys are kept for at least so long after their record, by the time of the records.
    #[must_use]
    pub const fn for_duration(keep: Duration) -> Self {
        Self {
            keep: Some(keep),
            ..Self::unbounded()
        }
    }

    /// At most about so many keys are kept, over all partitions of the store. See [`AtCap`].
    #[must_use]
    pub const fn max_entries(entries: u64) -> Self {
        Self::unbounded().and_max_entries(entries)
    }

    /// At most about so many bytes of commit records are kept, over all partitions of the store:
    /// what is written, not what the engine's file takes, which gives space back late or reuses it.
    /// See [`AtCap`].
    #[must_use]
    pub const fn max_bytes(bytes: u64) -> Self {
        Self::unbounded().and_max_bytes(bytes)
    }

    /// And at most about so many keys.
    #[must_use]
    pub const fn and_max_entries(self, entries: u64) -> Self {
        let entries_max = Some(entries);
        Self {
            entries_max,
            ..self
        }
    }

    /// And at most about so many bytes of commit records.
    #[must_use]
    pub const fn and_max_bytes(self, bytes: u64) -> Self {
        let bytes_max = Some(bytes);
        Self { bytes_max, ..self }
    }

    /// What to do where the store is full: [`AtCap::Pause`] by default.
    #[must_use]
    pub const fn at_cap(self, at_cap: AtCap) -> Self {
        Self { at_cap, ..self }
    }

    /// How much of a partition may expire at once where its clock has jumped: 50 per cent by
    /// default, 100 for all of it.
    ///
    /// A clock has jumped where it moved by more than twice the time that really passed, and a
    /// minute. A sweep that would drop more than this is stopped, and said so. The partition goes
    /// on expiring when the [duration](Retention::for_duration) has passed since by the monotonic
    /// clock, which nobody can set: then all that was there is older than was promised.
    #[must_use]
    pub const fn sudden_percent_max(self, percent: u8) -> Self {
        let sudden_percent_max = percent;
        Self {
            sudden_percent_max,
            ..self
        }
    }

    /// How long keys are kept at least, `None` for ever.
    #[must_use]
    pub const fn duration(&self) -> Option<Duration> {
        self.keep
    }

    /// How many keys are kept at most.
    #[must_use]
    pub const fn entries_max(&self) -> Option<u64> {
        self.entries_max
    }

    /// How many bytes of commit records are kept at most.
    #[must_use]
    pub const fn bytes_max(&self) -> Option<u64> {
        self.bytes_max
    }

    /// Whether every key is kept for ever.
    #[must_use]
    pub const fn is_unbounded(&self) -> bool {
        self.keep.is_none() && self.entries_max.is_none() && self.bytes_max.is_none()
    }

    /// Whether there is a cap.
    pub(crate) const fn is_capped(&self) -> bool {
        self.entries_max.is_some() || self.bytes_max.is_some()
    }

    /// How much of a partition may expire at once.
    pub(crate) const fn percent(&self) -> u8 {
        self.sudden_percent_max
    }

    /// What happens at the cap.
    pub(crate) const fn policy(&self) -> AtCap {
        self.at_cap
    }
}

#[cfg(test)]
mod tests;
