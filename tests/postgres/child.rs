//! A member in a process of its own: this test binary, run again.

use std::env;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use idempotent_consumer::Delivery;
use idempotent_consumer::store::SqlEffects;
use tokio_postgres::Config;
use tokio_util::sync::CancellationToken;

use crate::database::runtime;
use crate::member::{self, builder, note};
use crate::postgres;

const DATABASE: &str = "IDEMPOTENT_CONSUMER_TEST_DATABASE";
const BOOTSTRAP: &str = "IDEMPOTENT_CONSUMER_TEST_BOOTSTRAP";
/// So slow is a handler, that a kill finds it at work.
const HANDLING: Duration = Duration::from_micros(200);

/// What the child does. Does nothing in a normal run of the tests.
#[test]
fn role() {
    let Ok(database) = env::var(DATABASE) else {
        return;
    };
    let of = |name| env::var(name).unwrap();
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    std::thread::spawn(move || {
        // Until the parent lets go.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stopped.cancel();
    });
    // Small batches: what is in flight at a kill differs each time.
    let builder = builder(&of(BOOTSTRAP)).uncommitted_records_max(40);
    let handler = async |record: &Delivery<'_>, sql: &mut SqlEffects| {
        note(record, sql).await?;
        std::thread::sleep(HANDLING);
        Ok(())
    };
    runtime().block_on(async {
        let store = member::store(&database.parse().unwrap());
        let consumer = builder.build(store).unwrap();
        consumer.run(handler, stop).await.unwrap();
    });
}

pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(bootstrap: &str, database: &Config) -> Self {
        let url = postgres::url(database, database.get_dbname().unwrap());
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "child::role", "--nocapture", "--test-threads=1"])
            .env(DATABASE, url)
            .env(BOOTSTRAP, bootstrap)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn assert_running(&mut self) {
        let ended = self.0.try_wait().unwrap();
        assert!(ended.is_none(), "the child ended: {ended:?}");
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
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
