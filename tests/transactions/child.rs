//! A consumer in a process of its own: this test binary, run again.

use std::env;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idempotent_consumer::store::SledStore;
use idempotent_consumer::{ClientConfig, Delivery, Outbox, Outgoing, Transactional};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::dying::Dying;
use crate::member::{self, builder};

const ORDERS: &str = "IDEMPOTENT_CONSUMER_TEST_ORDERS";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Death {
    /// In the handler of the record with this number, counted from 0.
    Handler(usize),
    /// When this commit, counted from 0, is about to be marked.
    Mark(usize),
    /// From outside, if at all.
    Outside,
}

/// What a child is to do.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) store: PathBuf,
    pub(crate) death: Death,
    pub(crate) timeout_ms: u64,
}

/// What the child does. Does nothing in a normal run of the tests.
#[test]
fn role() {
    let Ok(orders) = env::var(ORDERS) else {
        return;
    };
    let orders: Orders = serde_json::from_str(&orders).unwrap();
    member::log();
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    std::thread::spawn(move || {
        // Until the parent lets go.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stopped.cancel();
    });
    let mut config = ClientConfig::new();
    for (key, value) in &orders.settings {
        config.set(key, value);
    }
    let commits = match orders.death {
        Death::Mark(commit) => commit,
        _ => usize::MAX,
    };
    let store = Dying {
        inner: SledStore::open(&orders.store).unwrap(),
        commits: AtomicUsize::new(commits),
    };
    let store =
        Transactional::over(store).transaction_timeout(Duration::from_millis(orders.timeout_ms));
    let consumer = builder(config, &orders.from)
        .commit_within(Duration::from_millis(20))
        .build(store)
        .unwrap();
    let (begun, death, to) = (AtomicUsize::new(0), orders.death, orders.to);
    let handler = async move |record: &Delivery<'_>, outbox: &mut Outbox| {
        outbox.send(Outgoing::copy_of(record, &to));
        if death == Death::Handler(begun.fetch_add(1, Ordering::Relaxed)) {
            std::process::abort();
        }
        Ok(())
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    if let Err(error) = runtime.block_on(consumer.run(handler, stop)) {
        // No panic: whoever started it reads this.
        eprintln!("ended: {error}");
        std::process::exit(1);
    }
}

pub(crate) struct Process(Child);

pub(crate) fn start(orders: &Orders) -> Process {
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "child::role", "--nocapture", "--test-threads=1"])
        .env(ORDERS, serde_json::to_string(orders).unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    Process(child)
}

impl Process {
    pub(crate) fn assert_running(&mut self) {
        let ended = self.0.try_wait().unwrap();
        assert!(ended.is_none(), "the child ended: {ended:?}");
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Waits until it has died by itself.
    pub(crate) fn wait_for_death(mut self) {
        crate::broker::wait_for("the child's death", || self.0.try_wait().unwrap().is_some());
        let status = self.0.wait().unwrap();
        assert!(status.code().is_none(), "it ended in order: {status}");
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill")
            .args(["-s", name, &id])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Stops it in order.
    pub(crate) fn stop(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
