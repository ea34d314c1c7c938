//! A handler as a worker.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;

use super::drive::{Attempt, Worker};
use super::work::{Context, Work};
use crate::engine::Recorded;
use crate::handler::{Effects, Handler};
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
        let Some(record) = work.record() else {
            return Attempt::Gone;
        };
        let delivery = context.delivery(work, record, attempt);
        let mut effects = (self.collect.begin)();
        // A panic is a failure of the record, not of the process.
        let handling = async { self.handler.handle(&delivery, &mut effects).await };
        match AssertUnwindSafe(handling).catch_unwind().await {
            Ok(Ok(())) => Attempt::Done((self.collect.end)(effects)),
            Ok(Err(error)) => Attempt::Failed(error),
            Err(panic) => {
                let text = panic
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| panic.downcast_ref::<&str>().copied());
                let text = text.unwrap_or("no message");
                Attempt::Panicked(format!("the handler panicked: {text}").into())
            }
        }
    }

    async fn show(&self, context: &Context, work: &Work, result: Option<Vec<u8>>) -> bool {
        if let (Some(hook), Some(record)) = (&context.settings.on_duplicate, work.record()) {
            hook(&context.delivery(work, record, 1), result.as_deref());
        }
        true
    }
}
