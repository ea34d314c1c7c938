//! Both labs on a real broker. The scripts grade themselves; these tests count again, from the
//! files that a lab left and from the broker. Then the library does the labs' work on the topics
//! that they left behind.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[path = "../support/dump.rs"]
mod dump;
#[path = "../support/mod.rs"]
mod support;

mod report;
mod service;
mod shipments;
mod story;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use dump::Dump;
use support::kafka::{Kafka, repository};
use tempfile::TempDir;

const ORDERS: &str = "order-1\norder-2\norder-3\norder-4\norder-5\n";

/// The producer lab works with time-outs of 300 ms: nothing else may want the processor then.
static ONE_LAB_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn the_producer_lab_ends_with_the_numbers_it_asks_for() {
    let Some(kafka) = Kafka::shared() else { return };
    let dir = run_lab(kafka, "producer", "PASS 7/7");
    let dir = dir.path();

    let default = Dump::parse(&read(&dir.join("dump-default.txt")));
    assert_eq!(default.payloads, ["pay-1", "pay-2"]);
    assert!(
        default.batches.iter().all(|batch| batch.producer_id >= 0),
        "{default:?}"
    );
    assert_eq!(default.batches[0].base_sequence, 0);

    let without = Dump::parse(&read(&dir.join("dump-noidem.txt")));
    assert_eq!(without.payloads, ["pay-1", "pay-2", "pay-3"]);
    assert_eq!(without.batches.last().unwrap().producer_id, -1);

    let line = "x".repeat(5000);
    assert_eq!(read(&dir.join("big.txt")), format!("{line}\n"));
    let copies = kafka.end_offsets("payments-dup");
    assert!(
        copies.len() == 1 && copies[0] >= 2,
        "payments-dup: {copies:?}"
    );
    let dump = Dump::parse(&read(&dir.join("dump-dup.txt")));
    assert_eq!(dump.payloads.len(), usize::try_from(copies[0]).unwrap());
    assert!(dump.payloads.iter().all(|payload| *payload == line));

    assert_eq!(kafka.end_offsets("payments-idem"), [1]);
    for log in ["dup-producer.log", "idem-producer.log"] {
        assert!(
            read(&dir.join(log)).contains("REQUEST_TIMED_OUT"),
            "{log}: nothing was retried"
        );
    }

    let sessions = Dump::parse(&read(&dir.join("two-sessions.txt")));
    assert_eq!(sessions.payloads, ["pay-77", "pay-77"]);
    let ids: BTreeSet<_> = sessions
        .batches
        .iter()
        .map(|batch| batch.producer_id)
        .collect();
    assert!(ids.len() == 2 && !ids.contains(&-1), "{sessions:?}");
    assert_eq!(kafka.end_offsets("payments-app"), [2]);

    let report = format!(
        "dup_copies={}\nidem_copies=1\ntwo_sessions_copies=2\nacks_default=all\nidempotence_default=true\n",
        copies[0]
    );
    assert_eq!(read(&dir.join("producer-report.txt")), report);
    let settings = read(&dir.join("default-producer.log"));
    for setting in ["acks = -1", "enable.idempotence = true"] {
        let is_logged = settings.lines().any(|line| line.trim() == setting);
        assert!(is_logged, "default-producer.log without {setting}");
    }

    shipments::copies_take_effect_once(kafka, "payments-dup", copies[0]);
    shipments::copies_take_effect_once(kafka, "payments-app", 2);
}

#[test]
fn the_consumer_lab_ends_with_the_numbers_it_asks_for() {
    let Some(kafka) = Kafka::shared() else { return };
    let dir = run_lab(kafka, "consumer", "PASS 8/8");
    let dir = dir.path();

    assert_eq!(kafka.end_offsets("shipments"), [5]);
    let committed = cell(&dir.join("ship-crash.txt"), "CURRENT-OFFSET");
    assert_eq!(committed, "3");
    assert_eq!(read(&dir.join("processed-at-crash.txt")), "order-1\n");
    assert_eq!(read(&dir.join("ship-audit.txt")), ORDERS);
    assert_eq!(cell(&dir.join("ship-reset.txt"), "NEW-OFFSET"), "0");
    assert_eq!(
        read(&dir.join("processed.txt")),
        format!("order-1\n{ORDERS}")
    );
    assert_eq!(read(&dir.join("seen.txt")), ORDERS);
    assert_eq!(read(&dir.join("processed-dedup.txt")), ORDERS);
    assert_eq!(
        read(&dir.join("offset-reset.txt")),
        "late_count=0\nearly_count=5\n"
    );
    assert_eq!(
        read(&dir.join("consumer-report.txt")),
        "lost_after_crash=2\nduplicates_after_reset=1\nunique_orders=5\n"
    );

    shipments::crashes_and_a_rewind_ship_each_order_once(kafka, "shipments");
}

/// Runs a lab on `kafka` with this build's binaries and returns the directory it filled.
fn run_lab(kafka: &Kafka, lab: &str, verdict: &str) -> TempDir {
    let _guard = ONE_LAB_AT_A_TIME
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let dir = TempDir::with_prefix("lab-").unwrap();
    let output = Command::new("timeout")
        .arg("600")
        .arg(repository().join("scripts/lab"))
        .arg(lab)
        .arg(dir.path())
        .envs(kafka.environment())
        .env("DEDUP_BIN", env!("CARGO_BIN_EXE_dedup"))
        .env("SHIP_PROCESS_BIN", env!("CARGO_BIN_EXE_ship-process"))
        .env("KAFKA_LAB_SLOW_BIN", env!("CARGO_BIN_EXE_kafka-lab-slow"))
        .output()
        .expect("scripts/lab runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || printed.lines().last() != Some(verdict) {
        let kept = dir.keep();
        let said = String::from_utf8_lossy(&output.stderr);
        panic!(
            "{printed}{said}{} (files kept in {})",
            output.status,
            kept.display()
        );
    }
    dir
}

/// The one value below `column` in a table that `kafka-consumer-groups.sh` printed.
fn cell(path: &Path, column: &str) -> String {
    let text = read(path);
    let mut rows = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let head = rows
        .find(|row| row.first() == Some(&"GROUP"))
        .expect("a table");
    let at = head
        .iter()
        .position(|name| *name == column)
        .expect("the column");
    let values: Vec<_> = rows
        .filter_map(|row| row.get(at).map(ToString::to_string))
        .collect();
    assert_eq!(values.len(), 1, "{column} in:\n{text}");
    values.into_iter().next().unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
