//! Records of the partition in order, many in one transaction of the store's: what handlers write
//! and the marks are there together, or not at all.

mod run;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use self::run::Then;
use super::worker::{Failure, Next, after_failure, bury};
use crate::error::Error;
use crate::handler::Handler;
use crate::pipeline::lane::{Lane, Step};
use crate::pipeline::run::show;
use crate::pipeline::session::Driver;
use crate::pipeline::work::{Context, Errand, Finished, Outcome, Work};
use crate::store::transaction::{Transaction, TransactionError, Transactions};

/// How often a record that waits for another is looked at again.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Between two transactions of which nothing remained.
const ABORTED_PAUSE_MIN: Duration = Duration::from_millis(50);
const ABORTED_PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long transactions of which nothing remains are begun again. A database that restarts or
/// fails over is back by then; one that is not must be seen.
const ABORTED_LIMIT: Duration = Duration::from_secs(60);
/// But so many of them at least: one may last long by itself.
const ABORTED_MIN: u32 = 5;
/// So many keys are claimed in the first transaction, and more while all of them are handled in time:
/// what is claimed and not handled is written for nothing, and others wait for it.
const REACH_MIN: usize = 16;
/// How often a position is written that moved without anything being handled.
const MOVED_EVERY: Duration = Duration::from_millis(200);

/// Drives lanes whose handlers write in the store's own transactions.
pub(crate) struct Together<H, E> {
    pub(crate) handler: H,
    pub(crate) transactions: Arc<dyn Transactions<E>>,
    pub(crate) shows_copies: bool,
    pub(crate) runtime: Handle,
}

impl<E: 'static, H: Handler<E>> Driver for Together<H, E> {
    fn shows_copies(&self) -> bool {
        self.shows_copies
    }

    fn drive(&self, lane: &mut Lane) -> Result<(), Error> {
        let _runtime = self.runtime.enter();
        let transaction = self.transactions.open(lane.partition(), lane.lease());
        let mut batches = Batches {
            driver: self,
            context: Arc::clone(lane.context()),
            transaction,
            queue: VecDeque::new(),
            reach: REACH_MIN,
            attempt: 1,
            pauses: None,
            aborts: None,
            moved_at: Instant::now(),
            ending: false,
        };
        let ended = batches.work(lane);
        batches.give_back(lane);
        ended
    }
}

/// Transactions one after the other of which nothing remained.
struct Aborts {
    since: Instant,
    count: u32,
    pause: Duration,
}

struct Batches<'a, H, E> {
    driver: &'a Together<H, E>,
    context: Arc<Context>,
    transaction: Box<dyn Transaction<E>>,
    /// Taken in and not seen through, in their order. None behind one that is not simply to be
    /// handled.
    queue: VecDeque<Work>,
    /// How many are claimed at once.
    reach: usize,
    /// Of the first of them.
    attempt: u32,
    pauses: Option<Box<dyn Iterator<Item = Duration>>>,
    aborts: Option<Aborts>,
    moved_at: Instant,
    ending: bool,
}

impl<E: 'static, H: Handler<E>> Batches<'_, H, E> {
    fn work(&mut self, lane: &mut Lane) -> Result<(), Error> {
        loop {
            self.collect(lane)?;
            if self.ending {
                return Ok(());
            }
            if self.ready() > 0 {
                self.transact(lane)?;
            } else if let Some(work) = self.queue.pop_front() {
                self.see_to(lane, work)?;
            }
        }
    }

    /// How many of the first are to be handled.
    fn ready(&self) -> usize {
        let mut queue = self.queue.iter();
        let end = queue.position(|work| !work.is_claimed());
        end.unwrap_or(self.queue.len())
    }

    /// Takes in what there is, up to a record that must wait for those before it.
    fn collect(&mut self, lane: &mut Lane) -> Result<(), Error> {
        let max = self.context.settings.uncommitted_records_max;
        while !self.ending && self.ready() == self.queue.len() && self.queue.len() < max {
            lane.wait_for_records(self.queue.is_empty());
            match lane.next()? {
                Step::Work(work) | Step::Parked(work) => self.queue.push_back(work),
                Step::More if !self.queue.is_empty() => {}
                Step::More => self.commit_moved(lane, MOVED_EVERY)?,
                Step::Idle => {
                    if self.queue.is_empty() {
                        self.commit_moved(lane, Duration::ZERO)?;
                    }
                    break;
                }
                Step::Stopped => self.ending = true,
            }
        }
        self.ending |= self.context.stop.is_set();
        Ok(())
    }

    /// Copies alone move the position too, but nothing is repeated if that comes late.
    fn commit_moved(&mut self, lane: &Lane, every: Duration) -> Result<(), Error> {
        if self.moved_at.elapsed() < every {
            return Ok(());
        }
        self.moved_at = Instant::now();
        lane.commit_own()
    }

    /// One transaction, with as many of those that are ready as it takes.
    fn transact(&mut self, lane: &mut Lane) -> Result<(), Error> {
        let runtime = self.driver.runtime.clone();
        // One for all of it: another lane's handler may wait for what this transaction has written.
        let context = Arc::clone(&self.context);
        let Some(_permit) = runtime.block_on(context.permit()) else {
            self.ending = true;
            return Ok(());
        };
        let reach = self.reach.min(self.ready());
        let ran = match runtime.block_on(self.run(reach)) {
            Ok(ran) => ran,
            Err(error) => return self.aborted(error),
        };
        let done = ran.recorded.len();
        if done > 0 {
            let prepared = lane.prepare(self.queue.iter().zip(ran.recorded))?;
            if let Err(error) = runtime.block_on(self.transaction.commit(&prepared.unit)) {
                lane.take_back(prepared);
                return self.aborted(error);
            }
            lane.written(&prepared, self.queue.iter().take(done), self.attempt - 1);
            self.queue.drain(..done);
            self.first_is_new();
        } else if matches!(ran.then, Then::Ended) {
            // What it waits for may take long, and nobody is to wait for that.
            self.transaction = self
                .driver
                .transactions
                .open(lane.partition(), lane.lease());
        } else if let Err(error) = runtime.block_on(self.transaction.roll_back()) {
            return self.aborted(error);
        }
        self.aborts = None;
        self.reach = if done == reach {
            self.context
                .settings
                .uncommitted_records_max
                .min(2 * reach.max(self.reach))
        } else {
            (done + done / 2).max(1)
        };
        match ran.then {
            Then::Left => {}
            Then::Ended => self.ending = true,
            Then::DoneElsewhere => {
                // Not at once: it may have been said although its mark cannot be seen yet.
                self.ending |= self.context.stop.sleep(LOOK_EVERY);
                if let Some(mut work) = self.queue.pop_front() {
                    lane.release(&work);
                    work.claimed = false;
                    self.look_again(lane, work)?;
                }
            }
            Then::Failed(failure) => self.failed(lane, failure)?,
        }
        Ok(())
    }

    /// Nothing of a transaction remains: it is begun again, after a while.
    fn aborted(&mut self, error: TransactionError) -> Result<(), Error> {
        let error = match error {
            TransactionError::Aborted(error) => error,
            TransactionError::Failed(error) | TransactionError::Spoilt(error) => {
                return Err(error.into());
            }
        };
        // Others need not wait for what it holds while this one pauses.
        self.roll_back();
        let aborts = self.aborts.get_or_insert_with(|| Aborts {
            since: Instant::now(),
            count: 0,
            pause: ABORTED_PAUSE_MIN,
        });
        aborts.count += 1;
        if aborts.count >= ABORTED_MIN && aborts.since.elapsed() >= ABORTED_LIMIT {
            return Err(error.into());
        }
        let pause = aborts.pause;
        tracing::warn!(
            partition = %self.context.partition, %error, pause_ms = pause.as_millis(),
            "nothing of a transaction remains; its records are handled again"
        );
        aborts.pause = ABORTED_PAUSE_MAX.min(2 * pause);
        self.ending |= self.context.stop.sleep(pause);
        Ok(())
    }

    fn roll_back(&mut self) {
        if let Err(error) = self.driver.runtime.block_on(self.transaction.roll_back()) {
            tracing::debug!(?error, "a transaction was not rolled back");
        }
    }

    /// The first of those that are ready has not been tried.
    fn first_is_new(&mut self) {
        self.attempt = 1;
        self.pauses = None;
    }

    /// The first of those that are ready has failed. Those before it are done, and no transaction is
    /// open while it waits.
    fn failed(&mut self, lane: &mut Lane, failure: Failure) -> Result<(), Error> {
        let Some(work) = self.queue.pop_front() else {
            return Ok(());
        };
        let pauses = self
            .pauses
            .get_or_insert_with(|| Box::new(self.context.settings.retry.pauses()));
        let after = after_failure(&self.context, &work, self.attempt, failure, pauses);
        let (outcome, retried) = match self.driver.runtime.block_on(after) {
            Next::Attempt => {
                self.attempt += 1;
                self.queue.push_front(work);
                return Ok(());
            }
            Next::Over(outcome) => (outcome, u64::from(self.attempt - 1)),
        };
        self.first_is_new();
        self.finished(lane, work, outcome, retried)
    }

    /// A record that is not simply to be handled, when all before it are done.
    fn see_to(&mut self, lane: &mut Lane, mut work: Work) -> Result<(), Error> {
        match &mut work.errand {
            Errand::Handle => self.look_again(lane, work),
            Errand::Show(result) => {
                let result = result.take();
                show(&self.context, &work, result.as_deref());
                self.finished(lane, work, Outcome::Shown, 0)
            }
            Errand::Bury(reason, error) => {
                let (reason, error) = (*reason, std::mem::replace(&mut **error, Error::Panicked));
                let burying = bury(&self.context, &work, reason, error, 1);
                let outcome = self.driver.runtime.block_on(burying);
                self.finished(lane, work, outcome, 0)
            }
        }
    }

    /// A record whose key was in another's hands. It keeps its place before those behind it.
    fn look_again(&mut self, lane: &mut Lane, work: Work) -> Result<(), Error> {
        self.first_is_new();
        match lane.look_again(work)? {
            Some(Step::Work(work)) => self.queue.push_front(work),
            Some(Step::Parked(work)) => {
                self.queue.push_front(work);
                self.ending |= self.context.stop.sleep(LOOK_EVERY);
            }
            _ => {}
        }
        Ok(())
    }

    fn finished(
        &mut self,
        lane: &mut Lane,
        work: Work,
        outcome: Outcome,
        retried: u64,
    ) -> Result<(), Error> {
        // What a panic may have left behind went with its transaction.
        let unclear = false;
        let goes_on = lane.finished(Finished {
            work,
            outcome,
            retried,
            unclear,
        })?;
        self.ending |= !goes_on;
        Ok(())
    }

    /// What was taken in and not handled is somebody else's now.
    fn give_back(&mut self, lane: &Lane) {
        // An open transaction holds keys that others wait for.
        self.roll_back();
        for work in self.queue.drain(..) {
            lane.release(&work);
        }
    }
}
