//! What a partition's last record says of all before it, so that nothing but it need be read for
//! that.

use super::{CommitUnit, NextOffset};

/// 2001-09-09. Before it a number is no time in milliseconds: none, zero, or seconds.
const PLAUSIBLE_FROM_MS: i64 = 1_000_000_000_000;
/// No time at all.
pub(super) const NONE_MS: i64 = -1;

/// Where a partition's time stands, and what had been written of it, behind one of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    /// Where the log began, before anything expired.
    pub(super) began: NextOffset,
    /// The partition's clock, in milliseconds since 1970.
    pub(super) clock_ms: i64,
    /// What the last two samples of it were, the newer first.
    pub(super) samples_ms: [i64; 2],
    /// Keys and bytes written before the record.
    pub(super) before: Total,
}

/// How much was written of a partition, ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Total {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

impl Total {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            entries: self.entries.saturating_add(other.entries),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    pub(super) fn less(self, other: Self) -> Self {
        Self {
            entries: self.entries.saturating_sub(other.entries),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

impl Tail {
    /// Of a partition's first record.
    pub(super) fn first(unit: &CommitUnit, moment: Moment) -> Self {
        let sample_ms = sample_ms(unit, moment).unwrap_or(NONE_MS);
        Self {
            began: unit.previous,
            clock_ms: sample_ms,
            samples_ms: [sample_ms; 2],
            before: Total::default(),
        }
    }

    /// Of the next record, where so much was written with the one before.
    ///
    /// The clock goes as far as three samples in a row agree: one wrong record, or two, move it
    /// nowhere. And it never runs back: what comes late is as old as what came before it.
    pub(super) fn next(self, unit: &CommitUnit, written: Total, moment: Moment) -> Self {
        let [one, other] = self.samples_ms;
        let sampled = sample_ms(unit, moment);
        let agreed_ms = sampled.map_or(NONE_MS, |sample| sample.min(one).min(other));
        Self {
            clock_ms: self.clock_ms.max(agreed_ms),
            samples_ms: sampled.map_or(self.samples_ms, |sample| [sample, one]),
            before: self.before.and(written),
            ..self
        }
    }

    /// The time up to which the record with this tail is as young as the partition, where its
    /// clock stands at `clock_ms` now.
    ///
    /// Its records may be from later than its clock was. But what claims to be from later than the
    /// clock is even now would stay for ever: that is as old as its commit.
    pub(super) fn dated_ms(&self, max_timestamp_ms: i64, clock_ms: i64) -> i64 {
        if max_timestamp_ms <= clock_ms {
            self.clock_ms.max(max_timestamp_ms)
        } else {
            self.clock_ms
        }
    }
}

/// When a unit is taken in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Moment {
    /// It is committed now, in milliseconds since 1970.
    Now(i64),
    /// It is read now, and was written before there were tails: when is not known.
    #[cfg_attr(
        not(any(feature = "sled", feature = "redb")),
        expect(dead_code, reason = "in memory there is nothing old")
    )]
    Old(i64),
}

/// What time a unit says it is: that of its last record. `None` for one that only fills gaps: its
/// records are from whenever.
fn sample_ms(unit: &CommitUnit, moment: Moment) -> Option<i64> {
    if unit.next == unit.previous {
        return None;
    }
    let last = unit.anchor.map(|anchor| anchor.timestamp_ms);
    let said = last.unwrap_or(unit.max_timestamp_ms);
    let is_time = said >= PLAUSIBLE_FROM_MS;
    Some(match moment {
        Moment::Now(now_ms) | Moment::Old(now_ms) if is_time => said.min(now_ms),
        Moment::Now(now_ms) => now_ms,
        Moment::Old(_) => NONE_MS,
    })
}
