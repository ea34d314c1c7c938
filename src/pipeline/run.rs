//! Drives a lane with a handler.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;

use super::lane::{Lane, Step, Work};
use super::session::Driver;
use crate::error::Error;
use crate::handler::{Effects, Handler, HandlerError, HandlerResult};

/// A handler, and the runtime that its futures want.
pub(crate) struct HandlerDriver<H> {
    pub(crate) handler: H,
    pub(crate) runtime: Handle,
    pub(crate) shows_copies: bool,
}

impl<H: Handler> Driver for HandlerDriver<H> {
    fn shows_copies(&self) -> bool {
        self.shows_copies
    }

    fn drive(&self, lane: &mut Lane) -> Result<(), Error> {
        let _runtime = self.runtime.enter();
        loop {
            match lane.next()? {
                Step::Stopped => return Ok(()),
                Step::Copy(work, result) => show_copy(lane, &work, result.as_deref()),
                Step::Handle(work) => self.handle(lane, work)?,
            }
        }
    }
}

fn show_copy(lane: &Lane, work: &Work, result: Option<&[u8]>) {
    if let (Some(hook), Some(record)) = (&lane.settings().on_duplicate, work.record()) {
        hook(&lane.delivery(work, record), result);
    }
}

impl<H: Handler> HandlerDriver<H> {
    /// Handles a record: once, and again by policy while it fails.
    fn handle(&self, lane: &mut Lane, mut work: Work) -> Result<(), Error> {
        let mut pauses = lane.settings().retry.pauses();
        loop {
            let mut effects = Effects::default();
            let outcome = match work.record() {
                Some(record) => {
                    let delivery = lane.delivery(&work, record);
                    self.attempt(|| self.handler.handle(&delivery, &mut effects))
                }
                None => return Ok(()),
            };
            // A panic does not say whether the effect happened before it.
            let outcome = outcome.unwrap_or_else(|panic| {
                lane.unclear();
                Err(panic)
            });
            let error = match outcome {
                Ok(()) => return lane.done(&work, effects.take_result()),
                Err(error) => error,
            };
            let pause = match &error {
                HandlerError::Retry(_) => pauses.next(),
                HandlerError::Reject(_) => None,
            };
            let Some(pause) = pause else {
                return Err(lane.give_up(&work, error.into_inner()));
            };
            tracing::warn!(
                partition = %lane.partition(), offset = work.candidate.offset,
                attempt = work.attempt, pause_ms = pause.as_millis(), %error,
                "the handler failed; the record is tried again"
            );
            lane.retried();
            work.attempt += 1;
            if lane.stop().sleep(pause) {
                lane.release(&work);
                return Ok(());
            }
        }
    }

    /// Runs one attempt to its end. A panic (the outer error) is a failure of the record, not of
    /// the process.
    fn attempt<F: Future<Output = HandlerResult>>(
        &self,
        call: impl FnOnce() -> F,
    ) -> Result<HandlerResult, HandlerError> {
        let attempt = || {
            let mut future = pin!(call());
            // Most of what a handler waits for is there at once, or it waits for nothing: parking
            // the thread in the runtime costs more than such a handler.
            let first = future
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
            match first {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => self.runtime.block_on(future),
            }
        };
        catch_unwind(AssertUnwindSafe(attempt)).map_err(|panic| {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            HandlerError::Retry(
                format!("the handler panicked: {}", text.unwrap_or("no message")).into(),
            )
        })
    }
}
