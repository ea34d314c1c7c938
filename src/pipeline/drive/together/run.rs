//! The first records of a batch, in one transaction.

use std::time::Instant;

use super::Batches;
use crate::engine::Recorded;
use crate::handler::Handler;
use crate::pipeline::drive::worker::Failure;
use crate::pipeline::run::{Tried, try_once};
use crate::pipeline::work::Work;
use crate::store::transaction::{Claimed, TransactionError};

/// What came of the first records of a batch.
pub(super) struct Ran {
    /// Of those that were handled.
    pub(super) recorded: Vec<Recorded>,
    /// What became of the one behind them.
    pub(super) then: Then,
}

pub(super) enum Then {
    /// There is none, or it is left for another transaction.
    Left,
    /// Another owner has done it since it was looked up.
    DoneElsewhere,
    Failed(Failure),
    /// Nothing is handled any more.
    Ended,
}

impl<E: 'static, H: Handler<E>> Batches<'_, H, E> {
    /// Handles records in a transaction, until one is not done or it has been open for long enough.
    pub(super) async fn run(&mut self, reach: usize) -> Result<Ran, TransactionError> {
        let claims: Vec<_> = self.queue.iter().take(reach).filter_map(claim).collect();
        let claimed = tokio::select! {
            biased;
            // Another owner's transaction may hold a key for long.
            () = self.context.stop.token().cancelled() => {
                let (recorded, then) = (Vec::new(), Then::Ended);
                return Ok(Ran { recorded, then });
            }
            claimed = self.transaction.begin(&claims) => claimed?,
        };
        let mut claimed = claimed.into_iter();
        let (begun, mut recorded) = (Instant::now(), Vec::new());
        for (index, work) in self.queue.iter().take(reach).enumerate() {
            let over = |recorded, then| Ok(Ran { recorded, then });
            if work.candidate.fingerprint.is_some() && claimed.next() != Some(true) {
                return over(recorded, Then::DoneElsewhere);
            }
            let stopped = self.context.stop.is_set();
            if index > 0 && (stopped || begun.elapsed() >= self.context.settings.commit_linger) {
                return over(recorded, Then::Left);
            }
            let attempt = if index == 0 { self.attempt } else { 1 };
            self.transaction.save().await?;
            let effects = self.transaction.effects();
            let tried = try_once(&self.driver.handler, &self.context, work, attempt, effects).await;
            let failure = match tried {
                Tried::Done => match self.transaction.keep().await {
                    Ok(result) => {
                        let outbox = Vec::new();
                        recorded.push(Recorded { result, outbox });
                        continue;
                    }
                    Err(TransactionError::Spoilt(error)) => {
                        Failure::of(error.into(), &self.context.settings.retry)
                    }
                    Err(error) => return Err(error),
                },
                Tried::Gone => return over(recorded, Then::Ended),
                Tried::Failed(error) => Failure::of(error, &self.context.settings.retry),
                Tried::Panicked(error) => Failure::once(error),
            };
            // Where this fails too, it was not the handler's fault: the connection is lost.
            self.transaction.undo().await?;
            return over(recorded, Then::Failed(failure));
        }
        Ok(Ran {
            recorded,
            then: Then::Left,
        })
    }
}

fn claim(work: &Work) -> Option<Claimed> {
    Some(Claimed {
        fingerprint: work.candidate.fingerprint?,
        offset: work.candidate.offset,
        value_digest: work.candidate.value_digest,
        over_restored: work.candidate.over_restored,
    })
}
