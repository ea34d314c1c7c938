//! Trying again, for a while.

use std::time::{Duration, Instant};

use super::error::Failure;
use super::options::PostgresOptions;
use crate::store::StoreError;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long a transaction is waited for beyond the limits that the server has for it.
const LOCK_SLACK: Duration = Duration::from_secs(10);

/// One call's patience with a database that cannot be reached, or refuses for reasons that pass.
///
/// Another transaction that has a row is no outage, and ends in any case when the server finds its
/// process hung: it has a clock of its own.
pub(super) struct Outage {
    begun: Option<Instant>,
    limit: Duration,
    locked_since: Option<Instant>,
    lock_limit: Duration,
    pause: Duration,
}

impl Outage {
    pub(super) fn new(options: &PostgresOptions) -> Self {
        let hung = options.idle_in_transaction_timeout;
        let lock_limit = hung.saturating_add(options.lock_timeout);
        Self {
            begun: None,
            limit: options.outage_limit,
            locked_since: None,
            lock_limit: lock_limit.saturating_add(LOCK_SLACK),
            pause: FIRST_PAUSE,
        }
    }

    /// Waits before another attempt.
    ///
    /// # Errors
    /// The failure, where another attempt would not help or the time is over.
    pub(super) async fn pause(&mut self, failure: Failure) -> Result<(), StoreError> {
        let (begun, limit) = if failure.locked {
            self.begun = None;
            (&mut self.locked_since, self.lock_limit)
        } else {
            (&mut self.begun, self.limit)
        };
        let begun = *begun.get_or_insert_with(Instant::now);
        if !failure.transient || begun.elapsed() >= limit {
            return Err(failure.error);
        }
        tracing::warn!(error = %failure.error, "the database is tried again");
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(locked: bool) -> Failure {
        Failure {
            transient: true,
            locked,
            error: StoreError::Misused("on purpose"),
        }
    }

    #[tokio::test]
    async fn a_row_that_another_transaction_has_is_no_outage() {
        let options = PostgresOptions::default().outage_limit(Duration::ZERO);
        let mut outage = Outage::new(&options);
        outage.pause(failure(true)).await.unwrap();
        outage.pause(failure(false)).await.unwrap_err();
    }
}
