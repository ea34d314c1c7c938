//! `serve`: the proxy in the foreground, following the state file.

use std::time::Duration;

use idempotent_consumer::testkit::FaultProxy;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::args::Serve;
use crate::disk::Lock;
use crate::error::Error;
use crate::file::StateFile;
use crate::state::Serving;
use crate::{complain, say};

/// Time between looks at the state file: `on` and `off` wait about this long.
const POLL: Duration = Duration::from_millis(20);

pub(crate) fn run(args: &Serve) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::Signals)?;
    runtime.block_on(async {
        // Before anything is announced: a signal that comes right after the line must count.
        let mut terminate = signal(SignalKind::terminate()).map_err(Error::Signals)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::Signals)?;
        let mut server = Server::start(args)?;
        server.follow(&mut terminate, &mut interrupt).await;
        // While the lock is still held: later it might be another serve's.
        server.file.withdraw()
    })
}

struct Server {
    file: StateFile,
    proxy: FaultProxy,
    serving: Serving,
    /// The last complaint about the state file, so that it is made once and not at every look.
    complaint: Option<String>,
    _lock: Lock,
}

impl Server {
    fn start(args: &Serve) -> Result<Self, Error> {
        let file = StateFile::at(&args.state);
        // In this order: a command that holds the edit lock waits only for a serve that has the
        // serve lock, and that serve no longer waits for the command.
        let edit = file.lock_for_edit()?;
        let lock = file.lock_for_serve()?;
        file.withdraw()?;
        let state = file.read()?.unwrap_or_default().with(args.settings);
        let proxy = FaultProxy::start(args.listen, args.upstream, state.faults())?;
        file.write(state)?;
        let serving = Serving {
            process_id: std::process::id(),
            listen: proxy.local_addr(),
            upstream: proxy.upstream(),
            in_force: state,
        };
        file.confirm(serving)?;
        drop(edit);
        say(&format!(
            "listening on {}, forwarding to {}, {} (state file {})",
            serving.listen,
            serving.upstream,
            state.on_or_off(),
            file.path.display()
        ))?;
        Ok(Self {
            file,
            proxy,
            serving,
            complaint: None,
            _lock: lock,
        })
    }

    async fn follow(&mut self, terminate: &mut Signal, interrupt: &mut Signal) {
        let mut looks = interval(POLL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = terminate.recv() => return,
                _ = interrupt.recv() => return,
                _ = looks.tick() => {}
            }
            for problem in self.proxy.take_problems() {
                complain(&problem.to_string());
            }
            self.follow_state();
        }
    }

    /// Puts a changed state in force. A state that cannot be read leaves the one in force.
    fn follow_state(&mut self) {
        let state = match self.file.read() {
            Ok(Some(state)) => state,
            Ok(None) => {
                let path = self.file.path.display();
                return self.complain_once(format!("the state file {path} is gone"));
            }
            Err(error) => return self.complain_once(error.with_causes()),
        };
        if state != self.serving.in_force {
            let serving = Serving {
                in_force: state,
                ..self.serving
            };
            self.proxy.set(state.faults());
            // Tried again at the next look: the proxy must outlive a full disk.
            if let Err(error) = self.file.confirm(serving) {
                return self.complain_once(error.with_causes());
            }
            self.serving = serving;
        }
        self.complaint = None;
    }

    fn complain_once(&mut self, complaint: String) {
        if self.complaint.as_ref() != Some(&complaint) {
            let words = self.serving.in_force.on_or_off();
            complain(&format!("{complaint}; last confirmed: {words}"));
            self.complaint = Some(complaint);
        }
    }
}
