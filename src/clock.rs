//! The two clocks: what time it is, and how much of it has passed.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What a store goes by where it needs the time. The system's by default; tests put another in its
/// place.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// How much time has passed since some moment: it only grows, whatever is done to the other
    /// clock.
    fn elapsed(&self) -> Duration;
}

/// The system's clock.
///
/// The date is asked for once, when the process begins to use it, and goes on from there by the
/// monotonic clock: who sets the system's date while it runs moves nothing here. A machine that
/// slept is behind until the process starts again, and then keys are kept for longer.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    began_ms: i64,
    began: Instant,
}

impl SystemClock {
    /// The clock, from now on.
    #[must_use]
    pub fn new() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            // Before 1970: as far back as there are record times.
            began_ms: since_1970.map_or(0, ms),
            began: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        self.began_ms.saturating_add(ms(self.elapsed()))
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

/// A duration in milliseconds, as record times are counted.
pub(crate) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
