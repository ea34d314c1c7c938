//! Whether a partition's clock has moved as time does.

use std::time::Duration;

use crate::clock::{Clock, ms};

/// What is always allowed: clocks of machines differ, and records come in bursts.
const SLACK_MS: i64 = 60_000;
/// So much further than time did a clock may have moved.
const FACTOR: i64 = 2;

/// Where a partition's clock stood when it was last looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    clock_ms: i64,
    /// By the monotonic clock.
    at: Duration,
    /// Time that had passed before the first look: since the last commit, perhaps in another
    /// process.
    before_ms: i64,
    /// When expiry was stopped, by the monotonic clock.
    pub(super) held_at: Option<Duration>,
}

/// How far a clock has jumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Jump {
    pub(super) moved: Duration,
    pub(super) passed: Duration,
}

impl Look {
    pub(super) fn first(clock_ms: i64, clock: &dyn Clock) -> Self {
        Self {
            clock_ms,
            at: clock.elapsed(),
            before_ms: clock.now_ms().saturating_sub(clock_ms).max(0),
            held_at: None,
        }
    }

    /// How a clock that stands at `clock_ms` has jumped since, if it has.
    pub(super) fn jump(&self, clock_ms: i64, now: Duration) -> Option<Jump> {
        let moved_ms = clock_ms.saturating_sub(self.clock_ms);
        let passed_ms = ms(now.saturating_sub(self.at)).saturating_add(self.before_ms);
        let allowed_ms = passed_ms.saturating_mul(FACTOR).saturating_add(SLACK_MS);
        let duration = |ms: i64| Duration::from_millis(ms.unsigned_abs());
        (moved_ms > allowed_ms).then(|| Jump {
            moved: duration(moved_ms),
            passed: duration(passed_ms),
        })
    }

    /// The clock is believed as it stands. Time is counted from when it last moved.
    pub(super) fn believe(&mut self, clock_ms: i64, now: Duration) {
        if clock_ms != self.clock_ms || self.held_at.is_some() {
            *self = Self {
                clock_ms,
                at: now,
                before_ms: 0,
                held_at: None,
            };
        }
    }
}
