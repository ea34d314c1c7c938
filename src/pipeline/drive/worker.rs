//! Seeing one record through: attempts and the pauses between them.

use std::future::Future;
use std::time::Duration;

use crate::dead_letter::{Cause, Reason};
use crate::engine::Recorded;
use crate::error::{BoxError, Error};
use crate::handler::HandlerError;
use crate::pipeline::work::{Context, Errand, Finished, Outcome, Permit, Work};
use crate::retry::RetryPolicy;

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
    Done(Recorded),
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
    permit: Option<Permit>,
) -> Finished {
    let (mut retried, mut unclear) = (0, false);
    let outcome = match &mut work.errand {
        Errand::Handle => {
            let attempts = (&mut retried, &mut unclear);
            handle(worker, context, &work, permit, attempts).await
        }
        Errand::Bury(reason, error) => {
            let (reason, error) = (*reason, std::mem::replace(error, Error::Panicked));
            bury(context, &work, reason, error, 1).await
        }
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
    mut permit: Option<Permit>,
    (retried, unclear): (&mut u64, &mut bool),
) -> Outcome {
    let retry = &context.settings.retry;
    // Made where the first attempt fails: few do.
    let mut pauses = None;
    let mut attempt = 1;
    loop {
        let tried = {
            // For the attempt alone: a record that waits for its next one keeps nobody else waiting.
            let permit = match permit.take() {
                Some(permit) => Some(permit),
                None => context.permit().await,
            };
            let Some(_permit) = permit else {
                return Outcome::Released;
            };
            worker.attempt(context, work, attempt).await
        };
        let failure = match tried {
            Attempt::Done(recorded) => {
                *unclear = false;
                return Outcome::Done(recorded);
            }
            Attempt::Gone => return Outcome::Released,
            Attempt::Released => {
                let pause = retry.pauses().next().unwrap_or_default();
                if context.pause(pause, work.candidate.offset).await {
                    return Outcome::Released;
                }
                continue;
            }
            Attempt::Failed(error) => Failure::of(error, retry),
            Attempt::Panicked(error) => {
                *unclear = true;
                Failure::once(error)
            }
        };
        match after_failure(
            context,
            work,
            attempt,
            failure,
            pauses.get_or_insert_with(|| retry.pauses()),
        )
        .await
        {
            Next::Attempt => (*retried, attempt) = (*retried + 1, attempt + 1),
            Next::Over(outcome) => return outcome,
        }
    }
}

/// An attempt that failed, and what a letter says of it if there is no other.
pub(super) struct Failure {
    error: BoxError,
    reason: Reason,
}

impl Failure {
    pub(super) fn of(error: HandlerError, retry: &RetryPolicy) -> Self {
        match error {
            HandlerError::Retry(error) if retry.covers(&*error) => Self::once(error),
            HandlerError::Retry(error) | HandlerError::Reject(error) => Self {
                error,
                reason: Reason::Rejected,
            },
        }
    }

    /// One that another attempt may follow, whatever the policy covers.
    pub(super) fn once(error: BoxError) -> Self {
        Self {
            error,
            reason: Reason::AttemptsUsedUp,
        }
    }
}

/// What follows a failed attempt.
pub(super) enum Next {
    /// Another, now: the pause is over.
    Attempt,
    Over(Outcome),
}

pub(super) async fn after_failure(
    context: &Context,
    work: &Work,
    attempt: u32,
    failure: Failure,
    pauses: &mut impl Iterator<Item = Duration>,
) -> Next {
    let Failure { error, reason } = failure;
    if context.stop.late().is_cancelled() {
        // Nobody waits for it any more: the partition's next owner decides about the record, and
        // the error may be no more than the end of the handler's own runtime.
        return Next::Over(Outcome::Released);
    }
    let again = reason == Reason::AttemptsUsedUp;
    let Some(pause) = pauses.next().filter(|_| again) else {
        return Next::Over(give_up(context, work, reason, attempt, error).await);
    };
    warn(context, work, attempt, pause, &error);
    if context.pause(pause, work.candidate.offset).await {
        return Next::Over(Outcome::Released);
    }
    Next::Attempt
}

fn warn(context: &Context, work: &Work, attempt: u32, pause: Duration, error: &BoxError) {
    tracing::warn!(
        partition = %context.partition, offset = work.candidate.offset,
        attempt, pause_ms = pause.as_millis(), %error,
        "the handler failed; the record is tried again"
    );
}

/// No attempt is left: the record goes to the dead letters, or ends the consumer.
async fn give_up(
    context: &Context,
    work: &Work,
    reason: Reason,
    attempts: u32,
    source: BoxError,
) -> Outcome {
    let error = Error::Handler {
        at: context.coordinates(work.candidate.offset),
        attempts,
        source,
    };
    bury(context, work, reason, error, attempts).await
}

/// Writes the letter for a record that `error` would end the consumer with.
pub(super) async fn bury(
    context: &Context,
    work: &Work,
    reason: Reason,
    error: Error,
    attempts: u32,
) -> Outcome {
    let (Some(letterbox), Some(record)) = (&context.settings.letterbox, work.record()) else {
        return Outcome::Failed(error);
    };
    let text = match &error {
        Error::Handler { source, .. } => source.to_string(),
        error => error.to_string(),
    };
    let cause = Cause {
        reason,
        error: &text,
        attempts,
    };
    match letterbox.write(&record, &cause).await {
        Ok(()) => {
            tracing::warn!(%error, "the record went to the dead letters");
            Outcome::Buried
        }
        Err(letter) => {
            tracing::error!(%error, "a record that cannot be handled has no dead letter either");
            Outcome::Failed(letter.into())
        }
    }
}
