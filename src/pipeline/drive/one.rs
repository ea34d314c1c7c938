//! One record of the partition at a time, in the order of their offsets.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;

use super::worker::{Worker, see_through};
use crate::error::Error;
use crate::pipeline::lane::{Lane, Step};

pub(super) fn drive<W: Worker>(worker: &W, runtime: &Handle, lane: &mut Lane) -> Result<(), Error> {
    let context = lane.context().clone();
    loop {
        let work = match lane.next()? {
            Step::Stopped => return Ok(()),
            Step::Idle | Step::More => continue,
            // In order, a lane waits by itself.
            Step::Work(work) | Step::Parked(work) => work,
        };
        let finished = wait(runtime, see_through(worker, &context, work, None));
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
