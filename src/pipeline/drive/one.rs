//! One record of the partition at a time, in the order of their offsets.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;

use super::worker::{Attempt, Worker, see_on};
use crate::error::Error;
use crate::pipeline::lane::{Lane, Step};
use crate::pipeline::work::Errand;

pub(super) fn drive<W: Worker>(worker: &W, runtime: &Handle, lane: &mut Lane) -> Result<(), Error> {
    let context = lane.context().clone();
    loop {
        let work = match lane.next()? {
            Step::Stopped => return Ok(()),
            Step::Idle | Step::More => continue,
            // In order, a lane waits by itself.
            Step::Work(work) | Step::Parked(work) => work,
        };
        let mut first = None;
        if context.permits.is_none() && matches!(work.errand, Errand::Handle) {
            // Nearly every record ends here: without what the others are moved about for.
            match wait(runtime, worker.attempt(&context, &work, 1)) {
                Attempt::Done(recorded) => {
                    lane.done(&work, recorded)?;
                    continue;
                }
                tried => first = Some(tried),
            }
        }
        let finished = wait(runtime, see_on(worker, &context, work, None, first));
        if !lane.finished(finished)? {
            return Ok(());
        }
    }
}

/// Runs a future to its end.
///
/// Most of what a handler waits for is there at once, or it waits for nothing: parking the thread in
/// the runtime costs more than such a handler.
fn wait<F: Future>(runtime: &Handle, future: F) -> F::Output {
    let mut future = pin!(future);
    let first = future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    match first {
        Poll::Ready(output) => output,
        Poll::Pending => runtime.block_on(future),
    }
}
