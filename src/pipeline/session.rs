//! One membership in the group: partitions come and go, lanes with them.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::expiry::{self, Expiry};
use super::lane::{Beginning, Lane};
use super::report::Report;
use super::settings::Settings;
use super::shared::{Restoring, Shared};
use super::start;
use super::stop::Stop;
use super::taken::Taken;
use crate::dead_letter::DeadLetterError;
use crate::engine::{Committed, Committer, Engine};
use crate::error::Error;
use crate::record::{NextOffset, TopicPartition};
use crate::source::{Listener, Offered, Reader, Source, Start};
use crate::store::StoreError;

/// How long one poll waits: how late a shutdown is noticed.
const POLL_WAIT: Duration = Duration::from_millis(20);

/// Works through a lane until it is stopped.
pub(crate) trait Driver: Send + Sync + 'static {
    /// Whether it wants to see copies.
    fn shows_copies(&self) -> bool;

    /// Drives the lane. Returns when it is stopped or has failed.
    fn drive(&self, lane: &mut Lane) -> Result<(), Error>;
}

struct Running {
    stop: Arc<Stop>,
    thread: JoinHandle<()>,
}

/// The listener that turns assignments into lanes.
pub(crate) struct Session {
    engine: Engine,
    settings: Arc<Settings>,
    driver: Arc<dyn Driver>,
    shared: Arc<Shared>,
    committer: Committer,
    /// Ends with the session.
    _expiry: Option<Expiry>,
    taken: Mutex<HashMap<TopicPartition, Taken>>,
    running: Mutex<HashMap<TopicPartition, Running>>,
    /// Set with the end: the group may still offer partitions while it is being left.
    ending: AtomicBool,
}

impl Session {
    pub(crate) fn new(
        engine: Engine,
        settings: Settings,
        driver: Arc<dyn Driver>,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared::new(&settings));
        let sweeping = Expiry::start(&engine, &shared)?;
        let report = expiry::report(&engine, &shared);
        let committer =
            Committer::start(engine.clone(), settings.commit_linger, report).map_err(|source| {
                Error::Thread {
                    what: "commits".to_owned(),
                    source,
                }
            })?;
        Ok(Self {
            engine,
            settings: Arc::new(settings),
            driver,
            shared,
            committer,
            _expiry: sweeping,
            taken: Mutex::default(),
            running: Mutex::default(),
            ending: AtomicBool::new(false),
        })
    }

    /// Takes one offered partition and decides where it begins.
    fn take(&self, offered: &Offered) -> Result<Start, Error> {
        let partition = &offered.partition;
        let letters = self.settings.letterbox.as_ref();
        let mut replayed = self.settings.replay_from.iter();
        if letters.is_some_and(|letters| letters.is_at(partition.topic()))
            && !replayed.any(|topic| topic == partition.topic())
        {
            let topic = partition.topic().to_owned();
            return Err(DeadLetterError::Subscribed { topic }.into());
        }
        let mut ledger = self.engine.lease(partition)?;
        let (committed, start, restore_until) = if self.settings.transacts {
            ledger.commit_alone();
            start::beside_the_rows(&ledger, offered.committed, self.settings.restore)?
        } else {
            ledger.wake_with(self.committer.wake());
            let decided = start::decide(&ledger, offered.committed, self.settings.restore)?;
            (offered.committed, decided.0, decided.1)
        };
        // Reading begins one record early, to see whether the topic is still the one worked on.
        let anchor = ledger.lease().head.and_then(|head| head.anchor);
        let asked_for = anchor
            .map(|anchor| anchor.offset)
            .filter(|offset| NextOffset::new(*offset).map(Start::At) == Some(start));
        tracing::info!(
            %partition,
            committed = offered.committed.map(NextOffset::get),
            head = ledger.lease().head.map(|head| head.next.get()),
            in_doubt = ledger.lease().in_doubt,
            restoring = restore_until > NextOffset::ZERO,
            "partition assigned",
        );
        let taken = Taken {
            ledger,
            committed,
            restore_until,
            asked_for,
            // All that are offered together, before the first of them is read: a copy in one of
            // them must not be handled before its key has been found in another.
            restoring: (restore_until > NextOffset::ZERO).then(|| Restoring::new(&self.shared)),
        };
        self.shared.begin(partition, offered.committed);
        self.taken().insert(partition.clone(), taken);
        Ok(start)
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<TopicPartition, Taken>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, HashMap<TopicPartition, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, partition: TopicPartition, reader: Box<dyn Reader>) -> Result<(), Error> {
        // Taken away from under a failed offer: nothing to start, the session ends.
        let Some(taken) = self.taken().remove(&partition) else {
            return Ok(());
        };
        if self.ending.load(Ordering::Acquire) {
            taken.give_back()?;
            return Ok(());
        }
        let beginning = Beginning {
            ledger: taken.ledger,
            reader,
            committed: taken.committed,
            restore_until: taken.restore_until,
            asked_for: taken.asked_for,
            restoring: taken.restoring,
            shows_copies: self.driver.shows_copies(),
        };
        let stop = Arc::new(Stop::default());
        let settings = Arc::clone(&self.settings);
        let (shared, driver) = (Arc::clone(&self.shared), Arc::clone(&self.driver));
        let lane = Lane::new(beginning, settings, Arc::clone(&shared), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name(format!("ic-{partition}"))
            .spawn(move || work(lane, &*driver, &shared))
            .map_err(|source| Error::Thread {
                what: partition.to_string(),
                source,
            })?;
        self.running().insert(partition, Running { stop, thread });
        Ok(())
    }

    /// Ends lanes: all are told to stop, then each is waited for until the common deadline. Says
    /// which were late: they end by themselves. What they still mark is true; their positions go
    /// nowhere.
    fn drain(&self, partitions: &[TopicPartition]) -> Vec<Error> {
        let mut all_late = Vec::new();
        let end = Instant::now() + self.settings.drain_limit;
        let ending: Vec<_> = {
            let mut running = self.running();
            partitions
                .iter()
                .filter_map(|name| running.remove_entry(name))
                .collect()
        };
        // Who ends within its restore leaves keys unknown: all are told to stop before that counts.
        let restoring = Restoring::as_long(&self.shared);
        // Some time is left for the end itself.
        for (_, lane) in &ending {
            lane.stop.set(self.settings.drain_limit * 3 / 4);
        }
        drop(restoring);
        for (partition, lane) in ending {
            while !lane.thread.is_finished() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(1));
            }
            if lane.thread.is_finished() {
                if lane.thread.join().is_err() {
                    self.shared.fail(Error::Panicked);
                }
            } else {
                lane.stop.set_late();
                let limit_ms = self.settings.drain_limit.as_millis();
                let late = Error::DrainTimeout {
                    partition,
                    limit_ms,
                };
                tracing::warn!("{late}");
                all_late.push(late);
            }
        }
        // Offered, but never read.
        let mut taken = self.taken();
        for partition in partitions {
            if let Some(Err(error)) = taken.remove(partition).map(Taken::give_back) {
                self.shared.fail(error.into());
            }
        }
        all_late
    }

    /// Tells what is assigned now.
    fn tell(&self) {
        if let Some(hook) = &self.settings.on_assignment {
            let assigned: Vec<_> = self.running().keys().cloned().collect();
            // It must not unwind through librdkafka, which has called.
            if catch_unwind(AssertUnwindSafe(|| hook(&assigned))).is_err() {
                self.shared.fail(Error::Panicked);
            }
        }
    }

    fn drain_all(&self) {
        self.ending.store(true, Ordering::Release);
        let mut all: Vec<_> = self.running().keys().cloned().collect();
        all.extend(self.taken().keys().cloned());
        for late in self.drain(&all) {
            self.shared.fail(late);
        }
    }
}

/// A lane's thread.
fn work(mut lane: Lane, driver: &dyn Driver, shared: &Shared) {
    let stop = Arc::clone(&lane.context().stop);
    let fail = |error| match error {
        // Late: the partition has been taken again since. Its new lane decides about the record.
        Error::Store(StoreError::Fenced { .. }) if stop.is_set() || shared.is_lost(&stop) => {
            tracing::warn!("{error}");
        }
        error => shared.fail(error),
    };
    // A key function or a hook of the user's may panic. A lane that died without a word would leave
    // its partition unread for as long as the membership lasts; and whatever it died of, what has
    // taken effect in it is marked before anybody else may take its keys.
    let working = || lane.check_topic().and_then(|()| driver.drive(&mut lane));
    match catch_unwind(AssertUnwindSafe(working)) {
        Ok(Ok(())) => {}
        // Before the lane ends: its own end may fail for the same reason, and is only the echo.
        Ok(Err(error)) => fail(error),
        Err(_) => {
            // Handlers that were under way are gone with it.
            lane.unclear();
            shared.fail(Error::Panicked);
        }
    }
    match catch_unwind(AssertUnwindSafe(|| lane.finish())) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => fail(error),
        Err(_) => shared.fail(Error::Panicked),
    }
}

impl Listener for Session {
    fn offered(&self, partitions: &[Offered]) -> Vec<Start> {
        let take = |offered: &Offered| {
            if self.shared.has_failed() {
                // The consumer ends. Each of many partitions would wait once more for a store that
                // does not answer.
                return Start::Committed;
            }
            self.take(offered).unwrap_or_else(|error| {
                self.shared.fail(error);
                Start::Committed
            })
        };
        partitions.iter().map(take).collect()
    }

    fn assigned(&self, readers: Vec<(TopicPartition, Box<dyn Reader>)>) {
        for (partition, reader) in readers {
            if let Err(error) = self.start(partition, reader) {
                self.shared.fail(error);
            }
        }
        self.tell();
    }

    fn revoked(&self, partitions: &[TopicPartition], lost: bool) -> Vec<Committed> {
        tracing::info!(?partitions, lost, "partitions taken away");
        // Late work is no reason to stop here: it may be repeated elsewhere, and was warned of.
        let _late = self.drain(partitions);
        self.tell();
        let mut offsets = self.shared.offsets();
        partitions
            .iter()
            .filter_map(|partition| offsets.forget(partition))
            .collect()
    }
}

/// The polling thread: serves the group until the end is asked for, or something fails.
pub(crate) fn drive(
    mut source: impl Source,
    session: &Arc<Session>,
    shutdown: &CancellationToken,
) -> Result<Report, Error> {
    let shared = &session.shared;
    source.join(Arc::clone(session) as Arc<dyn Listener>)?;
    while !shutdown.is_cancelled() && !shared.has_failed() {
        if let Err(error) = source.poll(POLL_WAIT) {
            shared.fail(error.into());
        }
        let now = Instant::now();
        let mut offsets = shared.offsets();
        for answer in source.commit_answers() {
            if let Err(error) = &answer {
                tracing::warn!(%error, "the group refused positions; they are sent again");
            }
            tracing::debug!(?answer, "the group answers");
            offsets.answered(answer, now);
        }
        if let Some(due) = offsets.due(now) {
            tracing::debug!(positions = ?due, "positions go to the group");
            source.commit(&due);
        }
    }
    session.drain_all();
    let open = shared.offsets().unconfirmed();
    if let Err(error) = source.leave(&open, session.settings.drain_limit) {
        shared.fail(error.into());
    }
    match shared.take_failure() {
        Some(error) => Err(error),
        None => Ok(shared.report().clone()),
    }
}
