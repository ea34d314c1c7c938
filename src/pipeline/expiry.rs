//! The thread that drops what a retention does not keep, and what holds everything up while the
//! store is full.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::shared::Shared;
use crate::engine::{Committed, Engine};
use crate::error::Error;
use crate::metrics;
use crate::record::NextOffset;
use crate::retention::{AtCap, Retention, Sweeper};
use crate::store::{Retained, Retaining, StoreError};

/// How often it is looked what has expired, unless the store is full.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Between two steps, so that commits come first.
const REST: Duration = Duration::from_millis(5);

/// Whether there is room for new records.
#[derive(Debug)]
pub(super) struct Room {
    retention: Retention,
    paused: AtomicBool,
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Wanted {
    sweep: bool,
    stop: bool,
}

impl Room {
    pub(super) fn new(retention: Retention) -> Self {
        Self {
            retention,
            paused: AtomicBool::new(false),
            wanted: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no new record is to be handled.
    pub(super) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    /// Looks how full the store is, after a commit. At the cap nothing waits for the next sweep.
    pub(super) fn look(&self, engine: &Engine) {
        let Some(store) = engine.store().retaining() else {
            return;
        };
        if self.retention.is_capped() && self.retention.full(store.usage()).is_some() {
            if self.retention.policy() == AtCap::Pause {
                self.decide(store);
            }
            self.wanted().sweep = true;
            self.changed.notify_all();
        }
    }

    /// Holds everything up while the store is full, and says so when that begins and ends.
    fn decide(&self, store: &dyn Retaining) {
        let full = self.retention.full(store.usage());
        let before = self.paused.swap(full.is_some(), Ordering::AcqRel);
        match full {
            Some(full) if !before => tracing::warn!(
                "no new record is handled until expiry makes room: {full}. Raise it, or choose \
                 AtCap::ShrinkWindow, which drops the oldest keys before their time"
            ),
            None if before => tracing::info!("there is room in the store again"),
            _ => {}
        }
        if before != full.is_some() {
            metrics::paused(full.is_some());
        }
    }

    /// Waits until a sweep is due. `false` at the end.
    fn wait(&self) -> bool {
        let wanted = self.wanted();
        let none = |wanted: &mut Wanted| !(wanted.sweep || wanted.stop);
        let told = self.changed.wait_timeout_while(wanted, SWEEP_EVERY, none);
        let (mut wanted, _) = told.unwrap_or_else(PoisonError::into_inner);
        wanted.sweep = false;
        !wanted.stop
    }

    /// Waits a little between two steps. `false` at the end.
    fn rest(&self) -> bool {
        let wanted = self.wanted();
        let told = self
            .changed
            .wait_timeout_while(wanted, REST, |wanted| !wanted.stop);
        let (wanted, _) = told.unwrap_or_else(PoisonError::into_inner);
        !wanted.stop
    }

    fn stop(&self) {
        self.wanted().stop = true;
        self.changed.notify_all();
    }
}

/// The running thread.
pub(super) struct Expiry {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Expiry {
    /// Starts it, where there is anything to expire.
    pub(super) fn start(engine: &Engine, shared: &Arc<Shared>) -> Result<Option<Self>, Error> {
        let retention = shared.room().retention;
        if retention.is_unbounded() {
            return Ok(None);
        }
        let sweeper = engine.sweeper(retention)?;
        let (engine, working) = (engine.clone(), Arc::clone(shared));
        let work = move || {
            let mut sweeper = sweeper;
            let sweeping = || sweep(&engine, &mut sweeper, &working);
            match catch_unwind(AssertUnwindSafe(sweeping)) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => working.fail(error.into()),
                // Without a word the store would only grow from here on.
                Err(_) => working.fail(Error::Panicked),
            }
        };
        let thread = std::thread::Builder::new().name("ic-expire".to_owned());
        let failed = |source: io::Error| Error::Thread {
            what: "expiry".to_owned(),
            source,
        };
        Ok(Some(Self {
            shared: Arc::clone(shared),
            thread: Some(thread.spawn(work).map_err(failed)?),
        }))
    }
}

impl Drop for Expiry {
    fn drop(&mut self) {
        self.shared.room().stop();
        if let Some(thread) = self.thread.take() {
            // Its panics are caught, and told.
            let _ = thread.join();
        }
    }
}

/// What hears of every commit: positions may follow, and the store may be full.
pub(super) fn report(
    engine: &Engine,
    shared: &Arc<Shared>,
) -> impl Fn(Result<Vec<Committed>, StoreError>) + Send + use<> {
    let (engine, told) = (engine.clone(), Arc::clone(shared));
    move |committed| match committed {
        Ok(committed) => {
            told.committed(committed);
            told.room().look(&engine);
        }
        Err(error) => told.fail(error.into()),
    }
}

fn sweep(engine: &Engine, sweeper: &mut Sweeper, shared: &Shared) -> Result<(), StoreError> {
    let room = shared.room();
    let limit = |one: &Retained| limit(one, shared);
    loop {
        sweeper.sweep_below(&limit, &mut || room.rest())?;
        if let Some(store) = engine.store().retaining() {
            room.decide(store);
        }
        if !room.wait() {
            return Ok(());
        }
    }
}

/// Up to where something of a partition may expire: what the group has committed. Of one that is
/// not worked on here, all that is done: nobody here tells the group of it any more.
fn limit(one: &Retained, shared: &Shared) -> NextOffset {
    if !one.open || shared.sends_offsets() {
        return one.position;
    }
    let confirmed = shared.offsets().confirmed(&one.partition);
    confirmed.unwrap_or_default()
}
