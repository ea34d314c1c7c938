//! When a handler fails: again, how often, after how long.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// How a failing record is tried again: in its place, with growing pauses, a bounded number of
/// times. Nothing behind it in its partition is handled meanwhile, and its offset does not move.
///
/// By default 5 attempts with pauses of 100, 200, 400 and 800 ms, each with a random part on top
/// so that a fleet does not knock at the same moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    attempts_max: u32,
    pause_min: Duration,
    pause_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 5,
            pause_min: Duration::from_millis(100),
            pause_max: Duration::from_secs(10),
        }
    }
}

impl RetryPolicy {
    /// One attempt, then the end.
    #[must_use]
    pub fn never() -> Self {
        Self {
            attempts_max: 1,
            ..Self::default()
        }
    }

    /// Doubling pauses from `pause_min` up to `pause_max`, at most `attempts_max` attempts in all.
    /// A maximum below the minimum counts as the minimum, no attempt as one, a pause of more than
    /// a day as a day.
    #[must_use]
    pub fn exponential(attempts_max: u32, pause_min: Duration, pause_max: Duration) -> Self {
        Self {
            attempts_max: attempts_max.max(1),
            pause_min: pause_min.min(DAY),
            pause_max: pause_max.max(pause_min).min(DAY),
        }
    }

    /// The pauses between the attempts: one less than there are attempts.
    pub(crate) fn pauses(&self) -> impl Iterator<Item = Duration> + use<> {
        ExponentialBuilder::new()
            .with_min_delay(self.pause_min)
            .with_max_delay(self.pause_max)
            .with_factor(2.0)
            .with_jitter()
            .with_max_times(self.attempts_max.saturating_sub(1) as usize)
            .build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let policy =
            RetryPolicy::exponential(4, Duration::from_millis(10), Duration::from_millis(25));
        let pauses: Vec<_> = policy.pauses().collect();
        assert_eq!(pauses.len(), 3);
        assert!(
            pauses
                .iter()
                .all(|pause| *pause >= Duration::from_millis(10)),
            "{pauses:?}"
        );
        // The random part is at most the pause itself.
        assert!(
            pauses
                .iter()
                .all(|pause| *pause <= Duration::from_millis(50)),
            "{pauses:?}"
        );
        assert_eq!(RetryPolicy::never().pauses().count(), 0);
    }
}
