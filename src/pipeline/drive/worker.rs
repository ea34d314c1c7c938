//! Seeing one record through: attempts and the pauses between them.

use std::future::Future;
use std::time::Duration;

use crate::error::{BoxError, Error};
use crate::handler::HandlerError;
use crate::pipeline::work::{Context, Errand, Finished, Outcome, Work};

/// Who handles records: a handler, or whoever pulls.
pub(crate) trait Worker: Send + Sync + 'static {
    /// Whether it wants to see copies.
    fn shows_copies(&self) -> bool;

    /// Tries a record once.
    fn attempt(
        &self,
        context: &Context,
        work: &Work,
        attempt: u32,
    ) -> impl Future<Output = Attempt>;

    /// Shows a copy. `false` where nobody looks any more.
    fn show(
        &self,
        context: &Context,
        work: &Work,
        result: Option<Vec<u8>>,
    ) -> impl Future<Output = bool>;
}

/// What came of one attempt.
pub(crate) enum Attempt {
    Done(Option<Box<[u8]>>),
    Failed(HandlerError),
    /// It does not say whether the effect happened before it.
    Panicked(BoxError),
    /// Given back unhandled, to be handed out again.
    Released,
    /// There is nobody to handle it.
    Gone,
}

pub(super) async fn see_through<W: Worker>(
    worker: &W,
    context: &Context,
    mut work: Work,
) -> Finished {
    let (mut retried, mut unclear) = (0, false);
    let outcome = match &mut work.errand {
        Errand::Handle => handle(worker, context, &work, &mut retried, &mut unclear).await,
        Errand::Show(result) => {
            let result = result.take();
            if worker.show(context, &work, result).await {
                Outcome::Shown
            } else {
                Outcome::Released
            }
        }
    };
    Finished {
        work,
        outcome,
        retried,
        unclear,
    }
}

/// Handles a record: once, and again by policy while it fails.
async fn handle<W: Worker>(
    worker: &W,
    context: &Context,
    work: &Work,
    retried: &mut u64,
    unclear: &mut bool,
) -> Outcome {
    let retry = &context.settings.retry;
    let mut pauses = retry.pauses();
    let mut attempt = 1;
    loop {
        let tried = {
            // For the attempt alone: a record that waits for its next one keeps nobody else waiting.
            let Some(_permit) = context.permit().await else {
                return Outcome::Released;
            };
            worker.attempt(context, work, attempt).await
        };
        let (error, again) = match tried {
            Attempt::Done(result) => {
                *unclear = false;
                return Outcome::Done(result);
            }
            Attempt::Gone => return Outcome::Released,
            Attempt::Released => {
                let pause = retry.pauses().next().unwrap_or_default();
                if context.pause(pause).await {
                    return Outcome::Released;
                }
                continue;
            }
            Attempt::Failed(HandlerError::Reject(error)) => (error, false),
            Attempt::Failed(HandlerError::Retry(error)) => {
                let again = retry.covers(&*error);
                (error, again)
            }
            Attempt::Panicked(error) => {
                *unclear = true;
                (error, true)
            }
        };
        let Some(pause) = pauses.next().filter(|_| again) else {
            return give_up(context, work, attempt, error);
        };
        warn(context, work, attempt, pause, &error);
        *retried += 1;
        attempt += 1;
        if context.pause(pause).await {
            return Outcome::Released;
        }
    }
}

fn warn(context: &Context, work: &Work, attempt: u32, pause: Duration, error: &BoxError) {
    tracing::warn!(
        partition = %context.partition, offset = work.candidate.offset,
        attempt, pause_ms = pause.as_millis(), %error,
        "the handler failed; the record is tried again"
    );
}

/// No attempt is left.
fn give_up(context: &Context, work: &Work, attempts: u32, source: BoxError) -> Outcome {
    Outcome::Failed(Error::Handler {
        at: context.coordinates(work.candidate.offset),
        attempts,
        source,
    })
}
