//! A handler as a worker.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;

use super::drive::{Attempt, Worker};
use super::work::{Context, Work};
use crate::engine::Recorded;
use crate::error::BoxError;
use crate::handler::{Effects, Handler, HandlerError};
use crate::outbox::Outbox;

/// Effects that are collected while a record is handled: what they begin as, and what they come to.
pub(crate) struct Collect<E> {
    begin: fn() -> E,
    end: fn(E) -> Recorded,
}

// Not derived: `E` itself need not be copied for it.
impl<E> Clone for Collect<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Collect<E> {}

impl Collect<Effects> {
    pub(crate) fn recorded() -> Self {
        Self {
            begin: Effects::default,
            end: |effects| Recorded {
                result: effects.into_result(),
                outbox: Vec::new(),
            },
        }
    }
}

impl Collect<Outbox> {
    pub(crate) fn sent() -> Self {
        Self {
            begin: Outbox::default,
            end: |outbox| Recorded {
                result: outbox.effects.into_result(),
                outbox: outbox.records,
            },
        }
    }
}

/// Hands records to a handler.
pub(crate) struct HandlerWorker<H, E> {
    pub(crate) handler: H,
    pub(crate) collect: Collect<E>,
    pub(crate) shows_copies: bool,
}

impl<E: 'static, H: Handler<E>> Worker for HandlerWorker<H, E> {
    fn shows_copies(&self) -> bool {
        self.shows_copies
    }

    async fn attempt(&self, context: &Context, work: &Work, attempt: u32) -> Attempt {
        let mut effects = (self.collect.begin)();
        match try_once(&self.handler, context, work, attempt, &mut effects).await {
            Tried::Done => Attempt::Done((self.collect.end)(effects)),
            Tried::Failed(error) => Attempt::Failed(error),
            Tried::Panicked(error) => Attempt::Panicked(error),
            Tried::Gone => Attempt::Gone,
        }
    }

    async fn show(&self, context: &Context, work: &Work, result: Option<Vec<u8>>) -> bool {
        show(context, work, result.as_deref());
        true
    }
}

/// What came of calling a handler.
pub(super) enum Tried {
    Done,
    Failed(HandlerError),
    Panicked(BoxError),
    /// The record is not there: a bug.
    Gone,
}

/// Calls a handler. A panic is a failure of the record, not of the process.
pub(super) async fn try_once<E, H: Handler<E>>(
    handler: &H,
    context: &Context,
    work: &Work,
    attempt: u32,
    effects: &mut E,
) -> Tried {
    let Some(record) = work.record() else {
        return Tried::Gone;
    };
    let delivery = context.delivery(work, record, attempt);
    let handling = async { handler.handle(&delivery, effects).await };
    match AssertUnwindSafe(handling).catch_unwind().await {
        Ok(Ok(())) => Tried::Done,
        Ok(Err(error)) => Tried::Failed(error),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("no message");
            Tried::Panicked(format!("the handler panicked: {text}").into())
        }
    }
}

/// Shows a copy to whoever asked for that.
pub(super) fn show(context: &Context, work: &Work, result: Option<&[u8]>) {
    if let (Some(hook), Some(record)) = (&context.settings.on_duplicate, work.record()) {
        hook(&context.delivery(work, record, 1), result);
    }
}
