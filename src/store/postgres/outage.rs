//! Trying again, for a while.

use std::time::{Duration, Instant};

use super::error::Failure;
use crate::store::StoreError;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// One call's patience with a database that cannot be reached, or refuses for reasons that pass.
pub(super) struct Outage {
    begun: Option<Instant>,
    limit: Duration,
    pause: Duration,
}

impl Outage {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            begun: None,
            limit,
            pause: FIRST_PAUSE,
        }
    }

    /// Waits before another attempt.
    ///
    /// # Errors
    /// The failure, where another attempt would not help or the time is over.
    pub(super) async fn pause(&mut self, failure: Failure) -> Result<(), StoreError> {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        if !failure.transient || begun.elapsed() >= self.limit {
            return Err(failure.error);
        }
        tracing::warn!(error = %failure.error, "the database is tried again");
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}
