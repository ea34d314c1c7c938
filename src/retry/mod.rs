//! When a handler fails: again, how often, after how long.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// How a failing record is tried again: in its place, with growing pauses, a bounded number of
/// times. Its offset does not move meanwhile, and, with [`Ordering::Partition`], nothing behind it in
/// its partition is handled.
///
/// Pauses may be as long as needed: the group is served by another thread, so that neither
/// `max.poll.interval.ms` nor the session time-out limits them, and the record stays in memory, so
/// that nothing has to be sought again.
///
/// [`Ordering::Partition`]: crate::Ordering::Partition
///
/// By default 5 attempts with pauses of 100, 200, 400 and 800 ms, each with a random part of up to
/// its own length on top so that a fleet does not knock at the same moment.
#[derive(Clone)]
pub struct RetryPolicy {
    attempts_max: u32,
    pause_min: Duration,
    pause_max: Duration,
    only: Option<Arc<Covers>>,
}

type Covers = dyn Fn(&(dyn Error + 'static)) -> bool + Send + Sync;

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy")
            .field("attempts_max", &self.attempts_max)
            .field("pause_min", &self.pause_min)
            .field("pause_max", &self.pause_max)
            .field("only", &self.only.is_some())
            .finish()
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 5,
            pause_min: Duration::from_millis(100),
            pause_max: Duration::from_secs(10),
            only: None,
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
    /// a day as a day. The random part comes on top of the maximum.
    #[must_use]
    pub fn exponential(attempts_max: u32, pause_min: Duration, pause_max: Duration) -> Self {
        Self {
            attempts_max: attempts_max.max(1),
            pause_min: pause_min.min(DAY),
            pause_max: pause_max.max(pause_min).min(DAY),
            only: None,
        }
    }

    /// Has only those errors tried again that `covers` says so of; all others count as
    /// [rejections](crate::HandlerError::Reject). By default all are. A handler's panic is always
    /// tried again.
    #[must_use]
    pub fn only(
        mut self,
        covers: impl Fn(&(dyn Error + 'static)) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.only = Some(Arc::new(covers));
        self
    }

    pub(crate) fn covers(&self, error: &(dyn Error + 'static)) -> bool {
        self.only.as_ref().is_none_or(|covers| covers(error))
    }

    /// How long all pauses together are at most: jitter may double one.
    pub(crate) fn longest(&self) -> Duration {
        let pauses = self.attempts_max.saturating_sub(1);
        // By then all have the same length.
        let growing = pauses.min(u64::BITS);
        let mut pause = self.pause_min.min(self.pause_max);
        let mut sum = Duration::ZERO;
        for _ in 0..growing {
            sum = sum.saturating_add(pause.saturating_mul(2));
            pause = pause.saturating_mul(2).min(self.pause_max);
        }
        sum.saturating_add(pause.saturating_mul(2).saturating_mul(pauses - growing))
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
