//! Many records of the partition at once, on one thread: their handlers wait in futures.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::runtime::Handle;

use super::waiting::{Waiting, order_key};
use super::worker::{Worker, see_through};
use crate::error::Error;
use crate::key::Fingerprint;
use crate::pipeline::lane::{Lane, Step};
use crate::pipeline::settings::{AHEAD_RECORDS_MAX, Ordering};
use crate::pipeline::work::{Context, Finished, Outcome, Work};
use crate::store::StoreError;

/// How often it is looked for new records, and at those that wait for a key of another partition,
/// while handlers run.
const TICK: Duration = Duration::from_millis(2);

type Running<'a> = Pin<Box<dyn Future<Output = (Option<Fingerprint>, Finished)> + 'a>>;

struct Flight<'a, W> {
    worker: &'a W,
    context: &'a Arc<Context>,
    running: FuturesUnordered<Running<'a>>,
    waiting: Waiting,
    /// The highest offset that was begun.
    highest: i64,
    /// Nothing new is taken in any more.
    ending: bool,
    /// Nothing that waits is begun any more either.
    failed: bool,
    /// What the lane's own lateness is told by.
    late: Option<Error>,
}

pub(super) fn drive<W: Worker>(worker: &W, runtime: &Handle, lane: &mut Lane) -> Result<(), Error> {
    let context = Arc::clone(lane.context());
    let mut flight = Flight {
        worker,
        context: &context,
        running: FuturesUnordered::new(),
        waiting: Waiting::default(),
        highest: -1,
        ending: false,
        failed: false,
        late: None,
    };
    loop {
        let turned = flight.turn(lane);
        flight.unless_failed(lane, turned);
        if flight.ending && flight.is_over(lane) {
            return flight.late.map_or(Ok(()), Err);
        }
        let finished = runtime.block_on(flight.wait(lane));
        if let Some(finished) = finished {
            flight.finished(lane, finished);
        }
        while let Some(Some(finished)) = flight.running.next().now_or_never() {
            flight.finished(lane, finished);
        }
    }
}

impl<W: Worker> Flight<'_, W> {
    fn turn(&mut self, lane: &mut Lane) -> Result<(), Error> {
        self.take_in(lane)?;
        if self.failed {
            return Ok(());
        }
        self.look_again(lane)
    }

    /// A failure ends the consumer. What else is under way is seen through first: it may take
    /// effect, and its mark must follow.
    fn unless_failed(&mut self, lane: &Lane, done: Result<(), Error>) {
        let Err(error) = done else { return };
        self.ending = true;
        self.failed = true;
        match error {
            Error::Store(StoreError::Fenced { .. }) if self.context.stop.is_set() => {
                self.late.get_or_insert(error);
            }
            error => lane.fail(error),
        }
    }

    /// Takes in what there is, as far as there is room.
    fn take_in(&mut self, lane: &mut Lane) -> Result<(), Error> {
        while !self.ending && self.has_room(lane) {
            lane.wait_for_records(self.is_empty());
            match lane.next()? {
                Step::Work(work) | Step::Parked(work) => self.begin(work),
                Step::Idle => break,
                Step::Stopped => self.ending = true,
            }
        }
        self.ending |= self.context.stop.is_set();
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.running.is_empty() && self.waiting.len() == 0
    }

    fn has_room(&self, lane: &Lane) -> bool {
        let ahead = self.waiting.oldest().map(|oldest| lane.taken() - oldest);
        let near = ahead.is_none_or(|ahead| ahead < AHEAD_RECORDS_MAX);
        near && lane.has_room_beside(self.waiting.len().max(self.running.len()))
    }

    /// A record's turn comes, or it takes its place in the order of its key.
    fn begin(&mut self, work: Work) {
        self.waiting.begin(&work);
        let key = match self.context.settings.ordering {
            Ordering::Key if work.is_held() => order_key(self.context, &work),
            _ => None,
        };
        if let Some(work) = self.waiting.enqueue(key, work) {
            self.start(key, work);
        }
    }

    fn start(&mut self, key: Option<Fingerprint>, work: Work) {
        if work.waits_for_another() {
            self.waiting.parked.push((key, work));
        } else {
            self.run(key, work);
        }
    }

    fn run(&mut self, key: Option<Fingerprint>, work: Work) {
        self.highest = self.highest.max(work.candidate.offset);
        let (worker, context) = (self.worker, self.context);
        self.running.push(Box::pin(async move {
            (key, see_through(worker, context, work).await)
        }));
    }

    /// Those that wait for another with their identity: it may be over now.
    fn look_again(&mut self, lane: &mut Lane) -> Result<(), Error> {
        // Many copies may stand behind each other in the order of one key.
        while self.look_once(lane)? {}
        Ok(())
    }

    /// Says whether any of them need not wait any more.
    fn look_once(&mut self, lane: &mut Lane) -> Result<bool, Error> {
        let mut any = false;
        for (key, work) in std::mem::take(&mut self.waiting.parked) {
            let offset = work.candidate.offset;
            let work = match lane.look_again(work)? {
                Some(Step::Parked(work)) => {
                    self.waiting.parked.push((key, work));
                    continue;
                }
                Some(Step::Work(work)) => Some(work),
                _ => None,
            };
            any = true;
            match work {
                // It keeps its place in the order of its key.
                Some(work) if work.is_held() => self.run(key, work),
                copy => {
                    self.waiting.over(offset);
                    if let Some(copy) = copy {
                        self.run(None, copy);
                    }
                    self.next_of(key);
                }
            }
        }
        Ok(any)
    }

    /// A record is over: the one behind it in the order of its key.
    fn next_of(&mut self, key: Option<Fingerprint>) {
        let next = key.and_then(|key| self.waiting.next(&key));
        if let Some(next) = next {
            self.start(key, next);
        }
    }

    /// Waits until a record is seen through, or until there may be something else to do.
    async fn wait(&mut self, lane: &Lane) -> Option<(Option<Fingerprint>, Finished)> {
        if self.is_empty() && !self.ending && self.has_room(lane) {
            // The read has waited.
            return None;
        }
        let stop = self.context.stop.token();
        tokio::select! {
            biased;
            Some(finished) = self.running.next() => Some(finished),
            () = stop.cancelled(), if !self.ending => None,
            () = lane.more_durable() => None,
            () = tokio::time::sleep(TICK) => None,
        }
    }

    fn finished(&mut self, lane: &mut Lane, (key, finished): (Option<Fingerprint>, Finished)) {
        let held = finished.work.is_held();
        let offset = finished.work.candidate.offset;
        let gone = matches!(finished.outcome, Outcome::Released | Outcome::Failed(_));
        let done = lane.finished(finished);
        self.ending |= gone;
        self.unless_failed(lane, done.map(drop));
        if held {
            self.waiting.over(offset);
        }
        match key {
            // None of its key may come before it.
            Some(key) if gone || self.failed => release(lane, self.waiting.close(&key)),
            key => self.next_of(key),
        }
    }

    /// At the end: nothing is begun but what lies before something that was, so that no other
    /// member finds it undone and does what lies behind it once more.
    fn is_over(&mut self, lane: &Lane) -> bool {
        let at_once = self.failed || self.context.stop.late().is_cancelled();
        let keep = if at_once {
            -1
        } else {
            self.highest.max(lane.settled_to().get() - 1)
        };
        release(lane, self.waiting.give_back(keep));
        self.running.is_empty() && self.waiting.parked.is_empty()
    }
}

fn release(lane: &Lane, back: Vec<Work>) {
    for work in back {
        lane.release(&work);
    }
}
