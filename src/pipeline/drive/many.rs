//! Many records of the partition at once, on one thread: their handlers wait in futures.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::waiting::{Waiting, order_key};
use super::worker::{Worker, see_through};
use crate::error::Error;
use crate::key::Fingerprint;
use crate::pipeline::lane::{Lane, Step};
use crate::pipeline::settings::{AHEAD_RECORDS_MAX, Ordering};
use crate::pipeline::work::{Context, Finished, Outcome, Permit, Work};
use crate::store::StoreError;

/// How often it is looked for new records, and at those that wait for a key of another partition,
/// while handlers run.
const TICK_MIN: Duration = Duration::from_millis(2);
/// While nothing changes it is looked less often.
const TICK_MAX: Duration = Duration::from_millis(16);

type Permits = Pin<Box<dyn Future<Output = Permit>>>;
type Running<'a> = Pin<Box<dyn Future<Output = (Option<Fingerprint>, Finished)> + 'a>>;

struct Flight<'a, W> {
    worker: &'a W,
    context: &'a Arc<Context>,
    running: FuturesUnordered<Running<'a>>,
    waiting: Waiting,
    /// The place in the queue for the next permit: it is kept, or others would always be first.
    permit: Option<Permits>,
    /// The highest offset that was begun.
    highest: i64,
    /// There is more to read.
    more: bool,
    tick: Duration,
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
        permit: None,
        highest: -1,
        more: false,
        tick: TICK_MIN,
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
        // What has ended by now, and no more: reading must have its turn too.
        for _ in 0..flight.running.len() {
            match flight.running.next().now_or_never() {
                Some(Some(finished)) => flight.finished(lane, finished),
                _ => break,
            }
        }
    }
}

impl<W: Worker> Flight<'_, W> {
    fn turn(&mut self, lane: &mut Lane) -> Result<(), Error> {
        // First those that wait: a record that is taken in before them may take what they wait for.
        if lane.may_begin() {
            self.look_again(lane)?;
        }
        self.take_in(lane)?;
        if self.ending {
            self.give_back(lane);
        }
        self.begin_ready();
        Ok(())
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
        self.more = false;
        while !self.ending && self.has_room(lane) {
            lane.wait_for_records(self.is_empty());
            match lane.next()? {
                Step::Work(work) | Step::Parked(work) => {
                    self.tick = TICK_MIN;
                    self.begin(lane, work);
                }
                Step::More => {
                    self.more = true;
                    break;
                }
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

    fn has_room(&self, lane: &mut Lane) -> bool {
        let ahead = self.waiting.oldest().map(|oldest| lane.taken() - oldest);
        let near = ahead.is_none_or(|ahead| ahead < AHEAD_RECORDS_MAX);
        near && lane.has_room_beside(self.waiting.len().max(self.running.len()))
    }

    /// A record's turn comes, or it takes its place in the order of its key.
    ///
    /// One that waits in that order lets go of its identity: two that wait for each other's would
    /// wait for ever. It is looked at again when its turn comes.
    fn begin(&mut self, lane: &Lane, mut work: Work) {
        self.waiting.begin(&work);
        let key = match self.context.settings.ordering {
            Ordering::Key if work.is_held() => order_key(self.context, &work),
            _ => None,
        };
        if self.waiting.is_taken(key.as_ref()) {
            lane.release(&work);
            work.claimed = false;
        }
        if let Some(work) = self.waiting.enqueue(key, work) {
            self.start(key, work);
        }
    }

    /// Begins those whose turn it is, as far as so few are handled.
    fn begin_ready(&mut self) {
        while !self.waiting.ready.is_empty() {
            let permit = match &self.context.permits {
                Some(permits) => self.permit_of(permits),
                None => Some(Permit(None)),
            };
            let Some(permit) = permit else { return };
            if let Some((key, work)) = self.waiting.ready.pop_front() {
                self.run(key, work, permit);
            }
        }
        // Not kept from others.
        self.permit = None;
    }

    /// The next permit, if it is this lane's turn.
    fn permit_of(&mut self, permits: &Arc<Semaphore>) -> Option<Permit> {
        let waiting = self.permit.get_or_insert_with(|| {
            let permits = Arc::clone(permits);
            Box::pin(async move { Permit(permits.acquire_owned().await.ok()) })
        });
        let permit = waiting.now_or_never()?;
        self.permit = None;
        Some(permit)
    }

    fn start(&mut self, key: Option<Fingerprint>, work: Work) {
        if work.waits_for_another() {
            self.waiting.parked.push_back((key, work));
        } else if work.is_claimed() {
            self.waiting.ready.push_back((key, work));
        } else {
            // Nothing is handled.
            self.run(key, work, Permit(None));
        }
    }

    fn run(&mut self, key: Option<Fingerprint>, work: Work, permit: Permit) {
        self.highest = self.highest.max(work.candidate.offset);
        let (worker, context) = (self.worker, self.context);
        self.running.push(Box::pin(async move {
            (key, see_through(worker, context, work, Some(permit)).await)
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
                    self.waiting.parked.push_back((key, work));
                    continue;
                }
                Some(Step::Work(work)) => Some(work),
                _ => None,
            };
            any = true;
            match work {
                // It keeps its place in the order of its key.
                Some(work) if work.is_held() => self.start(key, work),
                copy => {
                    self.waiting.over(offset);
                    if let Some(copy) = copy {
                        self.start(None, copy);
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
    async fn wait(&mut self, lane: &mut Lane) -> Option<(Option<Fingerprint>, Finished)> {
        if self.is_empty() && !self.ending && self.has_room(lane) {
            // The read has waited.
            return None;
        }
        if self.more {
            return self.running.next().now_or_never().flatten();
        }
        let stop = self.context.stop.token();
        let permit = async {
            match &mut self.permit {
                Some(permit) => Some(permit.await),
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            biased;
            Some(finished) = self.running.next() => Some(finished),
            () = stop.cancelled(), if !self.ending => None,
            Some(permit) = permit => {
                self.permit = Some(Box::pin(std::future::ready(permit)));
                None
            }
            () = lane.more_durable() => None,
            () = tokio::time::sleep(self.tick) => {
                self.tick = TICK_MAX.min(2 * self.tick);
                return None;
            }
        };
        self.tick = TICK_MIN;
        ended
    }

    fn finished(&mut self, lane: &mut Lane, (key, finished): (Option<Fingerprint>, Finished)) {
        let held = finished.work.is_held();
        let offset = finished.work.candidate.offset;
        let gone = matches!(finished.outcome, Outcome::Released | Outcome::Failed(_));
        let done = lane.finished(finished);
        let settled_to = lane.settled_to().get();
        self.context.settled_to.store(settled_to, Relaxed);
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

    /// At the end nothing is begun but what lies before something that was, so that no other member
    /// finds it undone and does what lies behind it once more; and after a failure not even that.
    fn give_back(&mut self, lane: &Lane) {
        let at_once = self.failed || lane.has_failed() || self.context.stop.late().is_cancelled();
        let keep = if at_once {
            -1
        } else {
            self.highest.max(lane.settled_to().get() - 1)
        };
        release(lane, self.waiting.give_back(keep));
    }

    fn is_over(&mut self, lane: &Lane) -> bool {
        self.give_back(lane);
        let waiting = self.waiting.parked.len() + self.waiting.ready.len();
        self.running.is_empty() && waiting == 0
    }
}

fn release(lane: &Lane, back: Vec<Work>) {
    for work in back {
        lane.release(&work);
    }
}
