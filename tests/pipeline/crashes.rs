//! A real crash: a child process that dies in the middle of its work.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use idempotent_consumer::testkit::EmbeddedBroker;

use crate::support::*;

const BROKER: &str = "PIPELINE_CRASH_BROKER";
const DIRECTORY: &str = "PIPELINE_CRASH_DIRECTORY";
const UNCOMMITTED_MAX: &str = "PIPELINE_CRASH_UNCOMMITTED_MAX";
/// The effect in which the child dies.
const LAST: usize = 700;
const RECORDS: u32 = 2_000;

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
    let builder = builder_with(config_at(&bootstrap)).uncommitted_records_max(max);
    let running = Running::start(builder, sled(&directory.join("seen")), move |delivery| {
        let (file, count) = &mut *done.lock().unwrap();
        writeln!(file, "{}", effect(delivery)).unwrap();
        *count += 1;
        if *count == LAST {
            std::process::abort();
        }
        Ok(())
    });
    running.wait(LAST + 1);
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
    assert_eq!(effects.len(), LAST, "{child:?}");
    effects
}

/// Crashes a child, goes on, and gives what took effect twice.
fn repeated_after_a_crash(uncommitted_max: usize) -> Vec<String> {
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    produce_numbered(&broker, 0, 0..RECORDS);
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
        all().collect::<HashSet<_>>().len() == RECORDS as usize
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
