//! A handler as a worker.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;

use super::drive::{Attempt, Worker};
use super::work::{Context, Work};
use crate::handler::{Effects, Handler};

/// Hands records to a handler.
pub(crate) struct HandlerWorker<H> {
    pub(crate) handler: H,
    pub(crate) shows_copies: bool,
}

impl<H: Handler> Worker for HandlerWorker<H> {
    fn shows_copies(&self) -> bool {
        self.shows_copies
    }

    async fn attempt(&self, context: &Context, work: &Work, attempt: u32) -> Attempt {
        let Some(record) = work.record() else {
            return Attempt::Gone;
        };
        let delivery = context.delivery(work, record, attempt);
        let mut effects = Effects::default();
        // A panic is a failure of the record, not of the process.
        let handling = async { self.handler.handle(&delivery, &mut effects).await };
        match AssertUnwindSafe(handling).catch_unwind().await {
            Ok(Ok(())) => Attempt::Done(effects.take_result()),
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
