//! A real crash: a child process that dies in the middle of its work.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};

use idempotent_consumer::testkit::EmbeddedBroker;
use idempotent_consumer::{Builder, Delivery, HandlerResult, Ordering};

use crate::stalled::Stalled;
use crate::support::*;

const BROKER: &str = "PIPELINE_CRASH_BROKER";
const DIRECTORY: &str = "PIPELINE_CRASH_DIRECTORY";
const UNCOMMITTED_MAX: &str = "PIPELINE_CRASH_UNCOMMITTED_MAX";
/// The effect in which the child dies.
const LAST: usize = 700;
const RECORDS: u32 = 2_000;
/// The same where the device stops to answer after the first commit: within a unit
/// as long as a store takes.
const LAST_STALLED: usize = 3_300;
const RECORDS_STALLED: u32 = 5_000;
/// What that child is told in the place of a bound.
const STALLED: usize = 0;
/// The same, for one that handles out of order.
const STALLED_UNORDERED: usize = 1_001;
/// The effect in which that one dies: gaps take room in its units.
const LAST_UNORDERED: usize = 2_500;
/// Of these, each is handled long after those behind it.
const SLOW_EVERY: i64 = 97;

/// The child: does nothing unless one of the tests below starts it.
#[test]
fn child_of_the_crash_tests() {
    let Ok(bootstrap) = std::env::var(BROKER) else {
        return;
    };
    let directory = std::env::var_os(DIRECTORY).unwrap();
    let directory = Path::new(&directory);
    let max: usize = std::env::var(UNCOMMITTED_MAX).unwrap().parse().unwrap();
    let effects = std::fs::File::create(directory.join("effects")).unwrap();
    let done = Mutex::new((effects, 0));
    let builder = builder_with(config_at(&bootstrap));
    let last = last_of(max);
    let handler = move |delivery: &Delivery<'_>| {
        let (file, count) = &mut *done.lock().unwrap();
        writeln!(file, "{}", effect(delivery)).unwrap();
        *count += 1;
        if *count == last {
            std::process::abort();
        }
        Ok(())
    };
    let seen = directory.join("seen");
    if max == STALLED_UNORDERED {
        out_of_order(builder, Stalled::after(1, &seen), handler).wait(last + 1);
    } else if max == STALLED {
        Running::start(builder, Stalled::after(1, &seen), handler).wait(last + 1);
    } else {
        let builder = builder.uncommitted_records_max(max);
        Running::start(builder, sled(&seen), handler).wait(last + 1);
    }
}

fn is_stalled(max: usize) -> bool {
    [STALLED, STALLED_UNORDERED].contains(&max)
}

fn last_of(max: usize) -> usize {
    match max {
        STALLED => LAST_STALLED,
        STALLED_UNORDERED => LAST_UNORDERED,
        _ => LAST,
    }
}

/// Handles many at once, and some of them only when a hundred others are done.
fn out_of_order(
    builder: Builder,
    store: Stalled,
    handler: impl Fn(&Delivery<'_>) -> HandlerResult + Send + Sync + 'static,
) -> Running {
    let done = AtomicUsize::new(0);
    let builder = builder.ordering(Ordering::Unordered);
    Running::run(
        builder,
        store,
        async move |delivery: &Delivery<'_>, _: &mut _| {
            if delivery.offset() % SLOW_EVERY == 0 {
                let enough = done.load(SeqCst) + 100;
                while done.load(SeqCst) < enough {
                    tokio::task::yield_now().await;
                }
            }
            handler(delivery)?;
            done.fetch_add(1, SeqCst);
            Ok(())
        },
    )
}

fn crash(broker: &EmbeddedBroker, directory: &Path, uncommitted_max: usize) -> HashSet<String> {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crashes::child_of_the_crash_tests"])
        .env(BROKER, broker.bootstrap_servers())
        .env(DIRECTORY, directory)
        .env(UNCOMMITTED_MAX, uncommitted_max.to_string())
        .output()
        .unwrap();
    assert!(!child.status.success(), "it was to die: {child:?}");
    let effects = std::fs::read_to_string(directory.join("effects")).unwrap();
    let effects: HashSet<_> = effects.lines().map(str::to_owned).collect();
    assert_eq!(effects.len(), last_of(uncommitted_max), "{child:?}");
    effects
}

/// Crashes a child, goes on, and gives what took effect twice.
fn repeated_after_a_crash(uncommitted_max: usize) -> Vec<String> {
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    let records = if is_stalled(uncommitted_max) {
        RECORDS_STALLED
    } else {
        RECORDS
    };
    produce_numbered(&broker, 0, 0..records);
    let before = crash(&broker, dir.path(), uncommitted_max);
    let doubts = Arc::new(Mutex::new(HashSet::new()));
    let noted = Arc::clone(&doubts);
    let running = Running::start(
        builder(&broker),
        sled(&dir.path().join("seen")),
        move |delivery| {
            if delivery.in_doubt() {
                noted.lock().unwrap().insert(effect(delivery));
            }
            Ok(())
        },
    );
    let all = || before.iter().cloned().chain(running.effects.list());
    running.wait_for("the rest", || {
        all().collect::<HashSet<_>>().len() == records as usize
    });
    let after = running.effects.list();
    running.stop();
    let distinct: HashSet<_> = after.iter().collect();
    assert_eq!(distinct.len(), after.len(), "none twice within a run");
    let doubts = doubts.lock().unwrap();
    assert!(doubts.len() <= 1_000);
    let repeated: Vec<_> = after.into_iter().filter(|e| before.contains(e)).collect();
    assert!(repeated.iter().all(|effect| doubts.contains(effect)));
    repeated
}

#[test]
fn a_crash_far_ahead_of_the_device_repeats_a_thousand_at_most() {
    let repeated = repeated_after_a_crash(STALLED);
    assert!(
        (1..=1_000).contains(&repeated.len()),
        "{} were",
        repeated.len()
    );
}

#[test]
fn a_crash_out_of_order_and_far_ahead_of_the_device_repeats_a_thousand_at_most() {
    let repeated = repeated_after_a_crash(STALLED_UNORDERED);
    assert!(
        (1..=1_000).contains(&repeated.len()),
        "{} were",
        repeated.len()
    );
}

// C026, C058, C073
#[test]
fn a_crash_loses_nothing_and_repeats_only_what_is_in_doubt() {
    let repeated = repeated_after_a_crash(1_000);
    assert!(
        (1..=LAST).contains(&repeated.len()),
        "the one in hand at least"
    );
}

#[test]
fn a_crash_repeats_one_record_at_most_where_each_is_marked_before_the_next() {
    let repeated = repeated_after_a_crash(1);
    assert_eq!(repeated, ["0:699:order-699=order-699"], "the one in hand");
}
