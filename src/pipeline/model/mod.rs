//! Everything that can happen to a consumer, in any order, against a model of what may follow.
//!
//! The session, its lanes, the engine and the store are the real ones; the broker, the handler's
//! effects and the faults are scripted. A sequence of [steps](op::Op) is carried out by a
//! [`Walk`](walk::Walk), and after each step a [`History`](history::History) has its say:
//!
//! - nothing is lost: at the end every record in the topic has taken effect;
//! - nothing takes effect twice, in any partition, unless its mark was not durable when its process
//!   died, and then the same record comes announced in doubt and with the same token;
//! - what retention has dropped may take effect again where it is sent again, and nowhere else;
//! - never more effects without marks than the limit;
//! - the group's position goes forward, and over records alone whose marks are durable;
//! - a session that ends without a fault leaves every effect marked, and one that ends for a fault
//!   says which.
//!
//! Only the order of the steps is chosen: threads run as they like. A sequence that fails is made
//! shorter as far as it still fails, printed, and its seed kept in `failures.txt`, which is run
//! first ever after.

mod change;
mod cluster;
mod expire;
mod ground;
mod history;
mod judge;
mod op;
mod past;
mod shop;
mod source;
mod stage;
mod sweep;
mod walk;

use std::sync::LazyLock;

use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestError, TestRunner};
use tokio::runtime::Runtime;

use self::ground::Kind;
use self::op::Op;
use self::walk::Walk;

/// Where handlers sleep.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap()
});

const SEQUENCES: u32 = 10_000;
/// Sequences at once: most of each is waiting.
const WORKERS: u32 = 6;
const FAILURES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/src/pipeline/model/failures.txt"
);

fn sequences() -> u32 {
    let name = "IDEMPOTENT_CONSUMER_MODEL_SEQUENCES";
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}")),
        Err(_) => SEQUENCES,
    }
}

fn walk(kind: Kind, ops: &[Op]) -> Result<(), String> {
    Walk::new(kind, RUNTIME.handle().clone()).go(ops)
}

/// Runs random sequences; gives back what the first failure says.
fn run(cases: u32) -> Result<(), String> {
    let config = Config {
        cases,
        max_shrink_iters: 2_000,
        max_shrink_time: 60_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(FAILURES))),
        ..Config::default()
    };
    let verdict = TestRunner::new(config).run(&op::sequence(), |ops| {
        walk(Kind::Memory, &ops).map_err(TestCaseError::fail)
    });
    match verdict {
        Ok(()) => Ok(()),
        Err(TestError::Fail(why, ops)) => Err(format!("{why}\nafter {ops:#?}")),
        Err(TestError::Abort(why)) => Err(format!("given up: {why}")),
    }
}

#[test]
fn whatever_happens_nothing_is_lost_and_nothing_repeated_but_what_is_in_doubt() {
    let share = sequences().div_ceil(WORKERS);
    let verdicts: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(|| run(share))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .collect()
    });
    let failed: Vec<_> = verdicts.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
