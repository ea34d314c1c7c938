//! The pull form: deliveries are taken one by one, and answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::drive::{Attempt, Worker};
use super::report::Report;
use super::settings::Settings;
use super::work::{Context, Errand, Work};
use crate::claim::Decision;
use crate::engine::Recorded;
use crate::error::Error;
use crate::handler::{Delivery, Effects, HandlerError};
use crate::key::Fingerprinter;
use crate::source::Batch;

/// How a claim was answered.
enum Answer {
    Done(Effects),
    Failed(HandlerError),
    Released,
}

/// A record with its decision, to be answered.
///
/// One that [awaits an answer](Claimed::awaits_answer) is [`done`](Claimed::done),
/// [`failed`](Claimed::failed), or released: dropping it is a release, never a mark, and the
/// record is handed out again. Until then nothing behind it in its partition is handed out. A copy
/// counts as done already; it is here to be answered with its first one's
/// [`result`](Claimed::result).
#[must_use = "dropping a claim releases it, and the record is handed out again"]
pub struct Claimed {
    batch: Arc<dyn Batch>,
    index: usize,
    decision: Decision,
    attempt: u32,
    in_doubt: bool,
    result: Option<Vec<u8>>,
    settings: Arc<Settings>,
    hasher: Arc<Fingerprinter>,
    replayed: bool,
    answer: Option<oneshot::Sender<Answer>>,
    /// Set by whoever is first: the puller that takes it, or the lane that takes it back.
    taken: Arc<AtomicBool>,
}

impl Claimed {
    /// Why the record is to be handled, or is not.
    #[must_use]
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Whether the record is to be handled. Else any answer is ignored.
    #[must_use]
    pub fn awaits_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// What the first record of this key recorded, for a copy; durable before it is shown.
    #[must_use]
    pub fn result(&self) -> Option<&[u8]> {
        self.result.as_deref()
    }

    /// The record. `None` only where its batch is broken, which is a bug.
    #[must_use]
    pub fn delivery(&self) -> Option<Delivery<'_>> {
        Some(Delivery {
            record: self.batch.record(self.index)?,
            attempt: self.attempt,
            in_doubt: self.in_doubt,
            recipe: &self.settings.recipe,
            hasher: &self.hasher,
            replayed: self.replayed,
        })
    }

    /// The effect has happened: the mark, with what is recorded beside it, is durable within the
    /// commit interval.
    pub fn done(self, effects: Effects) {
        self.answer(Answer::Done(effects));
    }

    /// The effect has not happened: the record is handed out again by the retry policy, and when
    /// that is used up, or the error is a [rejection](HandlerError::Reject), it goes to the
    /// [dead letters](crate::DeadLetter), or the consumer stops with it where there are none.
    pub fn failed(self, error: impl Into<HandlerError>) {
        self.answer(Answer::Failed(error.into()));
    }

    /// Gives the record back unhandled. It is handed out again; that does not count as a failure.
    pub fn release(self) {
        self.answer(Answer::Released);
    }

    fn answer(mut self, answer: Answer) {
        if let Some(sender) = self.answer.take() {
            // Nobody listens any more where the partition was given up: then the next owner gets
            // the record.
            let _ = sender.send(answer);
        }
    }
}

/// The deliveries of a running consumer.
///
/// Dropping it stops the consumer as [`finish`](Pull::finish) does, without telling how it went.
pub struct Pull {
    claims: mpsc::Receiver<Claimed>,
    end: JoinHandle<Result<Report, Error>>,
    shutdown: CancellationToken,
    _stop: DropGuard,
}

impl Pull {
    pub(crate) fn new(
        claims: mpsc::Receiver<Claimed>,
        end: JoinHandle<Result<Report, Error>>,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            claims,
            end,
            _stop: shutdown.clone().drop_guard(),
            shutdown,
        }
    }

    /// The next delivery, from whichever partition has one; `None` once the consumer has stopped,
    /// and then [`finish`](Pull::finish) says why. Cancel safe: nothing is lost with a dropped
    /// future.
    pub async fn next(&mut self) -> Option<Claimed> {
        loop {
            let claimed = self.claims.recv().await?;
            if !claimed.taken.swap(true, Ordering::AcqRel) {
                return Some(claimed);
            }
        }
    }

    /// Stops: work in hand is waited for, what is done is committed, the group is left.
    ///
    /// # Errors
    /// What ended the consumer, if something did before.
    pub async fn finish(mut self) -> Result<Report, Error> {
        self.shutdown.cancel();
        // Claims that nobody took are released.
        self.claims.close();
        while self.claims.recv().await.is_some() {}
        (&mut self.end).await.unwrap_or(Err(Error::Panicked))
    }
}

/// Hands a lane's records to whoever pulls.
pub(crate) struct PullWorker {
    claims: mpsc::Sender<Claimed>,
}

impl PullWorker {
    /// A worker, and where its claims come out.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Claimed>) {
        // One: a claim that waits in a queue keeps its partition waiting with it.
        let (claims, taken) = mpsc::channel(1);
        (Self { claims }, taken)
    }

    /// Nobody may be pulling when the partition is taken away: what waits for a puller is taken
    /// back then. A puller that has gone is as good as a stop.
    async fn offer(
        &self,
        context: &Context,
        work: &Work,
        attempt: u32,
        result: Option<Vec<u8>>,
    ) -> Option<Answer> {
        let copy = matches!(work.errand, Errand::Show(_));
        let (answer, mut answered) = oneshot::channel();
        let taken = Arc::new(AtomicBool::new(false));
        let claimed = Claimed {
            batch: Arc::clone(&work.batch),
            index: work.index,
            decision: work.decision,
            attempt,
            in_doubt: work.in_doubt,
            result,
            settings: Arc::clone(&context.settings),
            hasher: Arc::clone(work.origin.as_ref().unwrap_or(&context.hasher)),
            replayed: work.origin.is_some(),
            answer: (!copy).then_some(answer),
            taken: Arc::clone(&taken),
        };
        let stop = context.stop.token();
        tokio::select! {
            sent = self.claims.send(claimed) => sent.ok(),
            () = stop.cancelled() => None,
        }?;
        if copy {
            return Some(Answer::Released);
        }
        let answer = tokio::select! {
            answer = &mut answered => answer,
            () = stop.cancelled() => {
                if !taken.swap(true, Ordering::AcqRel) {
                    return None;
                }
                answered.await
            }
        };
        Some(answer.unwrap_or(Answer::Released))
    }
}

impl Worker for PullWorker {
    fn shows_copies(&self) -> bool {
        true
    }

    async fn attempt(&self, context: &Context, work: &Work, attempt: u32) -> Attempt {
        match self.offer(context, work, attempt, None).await {
            Some(Answer::Done(effects)) => Attempt::Done(Recorded {
                result: effects.into_result(),
                outbox: Vec::new(),
            }),
            Some(Answer::Failed(error)) => Attempt::Failed(error),
            Some(Answer::Released) => Attempt::Released,
            None => Attempt::Gone,
        }
    }

    async fn show(&self, context: &Context, work: &Work, result: Option<Vec<u8>>) -> bool {
        self.offer(context, work, 1, result).await.is_some()
    }
}
