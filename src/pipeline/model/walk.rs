//! Carries the steps out on a real session, and judges how each session ends.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::cluster::HEADER;
use super::ground::{Ground, Kind, marks, owner};
use super::history::History;
use super::judge::judge;
use super::op::{Op, PARTITIONS, Pace};
use super::shop::{Shop, show_copy};
use super::source::Scripted;
use super::stage::{Command, Faulty, Stage, World};
use crate::engine::Engine;
use crate::error::Error;
use crate::key::{MissingKey, Scope, header};
use crate::pipeline::{
    Collect, CopyHook, Driving, HandlerWorker, Mismatch, Report, Restore, Session, Settings, drive,
};
use crate::retention::Retention;
use crate::retry::RetryPolicy;
use crate::store::Store;
use crate::testkit::{Fault, FaultStore};

struct Running {
    thread: JoinHandle<Result<Report, Error>>,
    shutdown: CancellationToken,
    store: Arc<Faulty>,
}

pub(super) struct Walk {
    pub(super) stage: Arc<Stage>,
    ground: Ground,
    runtime: Handle,
    running: Option<Running>,
    pace: Pace,
    /// The fault to come, in operations from the next session's first.
    plan: Option<(u64, Fault)>,
    /// Whether a planned fault has happened.
    pub(super) fired: bool,
    sessions: u32,
}

impl Walk {
    pub(super) fn new(kind: Kind, runtime: Handle) -> Self {
        Self {
            stage: Arc::default(),
            ground: Ground::new(kind),
            runtime,
            running: None,
            pace: Pace {
                uncommitted_records_max: 2,
                linger: Duration::from_millis(1),
                shows_copies: true,
                ..Pace::default()
            },
            plan: None,
            fired: false,
            sessions: 0,
        }
    }

    /// Carries out all steps and a clean end. Says what was violated.
    pub(super) fn go(&mut self, ops: &[Op]) -> Result<(), String> {
        for op in ops {
            self.notice();
            self.stage.world().log.push(format!("-- {op:?}"));
            self.step(op);
            self.verdict()?;
        }
        self.end()?;
        self.verdict()
    }

    fn verdict(&self) -> Result<(), String> {
        let world = self.stage.world();
        match &world.violation {
            None => Ok(()),
            Some(what) => Err(format!("{what}\n  {}", world.log.join("\n  "))),
        }
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Assign { mask } => self.assign(*mask),
            Op::Revoke { mask, lost } => self.revoke(*mask, *lost),
            Op::Settle => self.wait("everything to be handled", World::is_settled),
            // Not within the patience of this test, where only the end of the session commits.
            Op::Harden if self.stage.world().pace.linger < Duration::from_secs(1) => {
                self.wait("everything to be durable", World::is_durable);
            }
            Op::Harden => {}
            Op::Stop => self.stop(),
            Op::Crash => self.crash(),
            Op::Plan { after, fault } => self.plan(*after, *fault),
            Op::Pace(pace) => self.pace = *pace,
            log => {
                self.stage.world().change(log);
                self.stage.tell();
            }
        }
    }

    pub(super) fn plan(&mut self, after: u64, fault: Fault) {
        match &self.running {
            Some(running) => running
                .store
                .plan(running.store.operations() + after, fault),
            None => self.plan = Some((after, fault)),
        }
    }

    fn start(&mut self) {
        self.sessions += 1;
        {
            let mut world = self.stage.world();
            // Before the store is opened again: nobody may have it any more.
            (world.marks, world.store) = (None, None);
            world.history.session = self.sessions;
            world.history.uncommitted_records_max = self.pace.uncommitted_records_max;
            world.pace = self.pace;
            world.handled.clear();
            world.touched.clear();
            (world.failures, world.source_failed, world.ended) = (0, false, false);
        }
        let ground = self.ground.open();
        let store = Arc::new(FaultStore::new(Arc::clone(&ground)));
        if let Some((number, fault)) = self.plan.take() {
            store.plan(number, fault);
        }
        let (stage, runtime) = (Arc::clone(&self.stage), self.runtime.clone());
        let (settings, shutdown) = (self.settings(), CancellationToken::new());
        let (faulty, stop) = (Arc::clone(&store), shutdown.clone());
        self.stage.world().store = Some(Arc::clone(&store));
        let session = move || {
            let engine = Engine::new(
                Arc::clone(&faulty) as Arc<dyn Store>,
                &owner(),
                Scope::Topic,
            )?;
            engine.store().bind_cluster("cluster")?;
            stage.world().marks = Some(marks(ground));
            let worker = HandlerWorker {
                handler: Shop(Arc::clone(&stage)),
                collect: Collect::recorded(),
                shows_copies: settings.on_duplicate.is_some(),
            };
            let driver = Driving { worker, runtime };
            let session = Arc::new(Session::new(engine, settings, Arc::new(driver))?);
            drive(Scripted::new(stage), &session, &stop)
        };
        let stage = Arc::clone(&self.stage);
        let thread = std::thread::spawn(move || {
            let result = session();
            stage.world().ended = true;
            stage.tell();
            result
        });
        self.running = Some(Running {
            thread,
            shutdown,
            store,
        });
    }

    fn settings(&self) -> Settings {
        let stage = Arc::clone(&self.stage);
        let hook: Arc<CopyHook> = Arc::new(move |delivery, result| {
            show_copy(&stage, delivery, result);
        });
        Settings {
            recipe: header(HEADER),
            missing_key: MissingKey::PassThrough,
            mismatch: Mismatch::TreatAsDuplicate,
            restore: Restore::FromSource,
            ordering: self.pace.order,
            concurrency_max: self.pace.concurrency_max,
            on_restore: None,
            on_assignment: None,
            letterbox: None,
            replay_from: Arc::default(),
            retention: Retention::unbounded(),
            retry: RetryPolicy::exponential(
                3,
                Duration::from_micros(20),
                Duration::from_micros(50),
            ),
            on_duplicate: self.pace.shows_copies.then_some(hook),
            uncommitted_records_max: self.pace.uncommitted_records_max,
            unsynced_records_max: self.pace.uncommitted_records_max,
            commit_linger: self.pace.linger,
            offsets_sent: false,
            transacts: false,
            offset_interval: Duration::ZERO,
            // What hangs at an end is found by this; below the patience.
            drain_limit: Duration::from_secs(60),
        }
    }

    fn assign(&mut self, mask: u8) {
        if self.running.is_none() {
            self.start();
        }
        let wanted = self.picked(mask, |given| !given);
        self.command(Command::Assign(wanted.clone()), &wanted);
    }

    fn revoke(&mut self, mask: u8, lost: bool) {
        let wanted = self.picked(mask, |given| given);
        self.command(Command::Revoke(wanted.clone(), lost), &wanted);
    }

    fn picked(&self, mask: u8, holds: impl Fn(bool) -> bool) -> Vec<usize> {
        let world = self.stage.world();
        let picked = (0..PARTITIONS).filter(|partition| mask >> partition & 1 == 1);
        picked
            .filter(|partition| holds(world.given[*partition].is_some()))
            .collect()
    }

    fn command(&mut self, command: Command, partitions: &[usize]) {
        if self.running.is_none() || partitions.is_empty() {
            return;
        }
        self.stage.world().commands.push_back(command);
        self.stage.tell();
        self.wait("a rebalance", |world| world.commands.is_empty());
    }

    /// Waits for a condition, or for the end of the session.
    fn wait(&mut self, what: &str, holds: impl Fn(&World) -> bool) {
        if self.running.is_some() {
            self.stage
                .wait_for(what, |world| world.ended || holds(world));
            self.notice();
        }
    }

    /// Sees to a session that has ended by itself.
    fn notice(&mut self) {
        if self.running.is_some() && self.stage.world().ended {
            self.reap();
        }
    }

    fn stop(&mut self) {
        if let Some(running) = &self.running {
            running.shutdown.cancel();
            self.reap();
        }
    }

    fn crash(&mut self) {
        if let Some(running) = &self.running {
            running.store.crash();
        }
        self.stop();
    }

    /// Takes a session's result and judges it.
    fn reap(&mut self) {
        self.stage
            .wait_for("the end of a session", |world| world.ended);
        let Some(running) = self.running.take_if(|_| self.stage.world().ended) else {
            return;
        };
        let result = running.thread.join().unwrap_or(Err(Error::Panicked));
        let fired = running.store.fired();
        let dead = running.store.has_crashed();
        self.fired |= fired.is_some();
        if let (Some((at, fault)), None) = (running.store.planned(), fired) {
            self.plan = Some((at.saturating_sub(running.store.operations()), fault));
        }
        let mut world = self.stage.world();
        world.log.push(format!(
            "session {} ended: {result:?} {fired:?}",
            self.sessions
        ));
        let faulty = dead || fired.is_some();
        let changed = match judge(&world, &result, dead, faulty) {
            Ok(changed) => changed,
            Err(why) => {
                world.violated(format!("{why}: {result:?}"));
                false
            }
        };
        if faulty {
            let touched = std::mem::take(&mut world.touched);
            world.history.disorder.extend(touched);
        }
        (world.given, world.reading) = Default::default();
        // It may have ended before it had one.
        world.marks.get_or_insert_with(|| self.ground.marks());
        world.commands.clear();
        drop(world);
        if changed {
            self.start_over();
        }
    }

    /// What an operator does about another topic: a new store, and no offsets.
    fn start_over(&mut self) {
        let mut world = self.stage.world();
        world.log.push("the operator starts over".to_owned());
        (world.marks, world.store) = (None, None);
        world.cluster.committed = [None; PARTITIONS];
        for log in &mut world.cluster.logs {
            log.changed = false;
        }
        world.history = History::default();
        drop(world);
        self.ground.renew();
    }

    /// Handles what is left without any fault, and looks for what was lost.
    fn end(&mut self) -> Result<(), String> {
        self.notice();
        // The session under way may still run into its fault, and two topics may be others.
        for _ in 0..PARTITIONS + 3 {
            self.stage.world().log.push("-- the end".to_owned());
            self.plan = None;
            if let Some(running) = &self.running {
                running.store.plan(u64::MAX, Fault::Error);
            }
            {
                let mut world = self.stage.world();
                world.attempts.clear();
                world.refusals.clear();
                world.broken = None;
            }
            self.assign(u8::MAX);
            self.wait("everything to be handled", World::is_settled);
            let clean = self.running.is_some();
            self.stop();
            self.verdict()?;
            if clean && self.stage.world().is_handled() {
                return Ok(());
            }
        }
        let mut world = self.stage.world();
        let what = world.unhandled();
        world.violated(format!("lost: {what:?}"));
        Ok(())
    }
}
