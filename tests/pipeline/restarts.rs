//! What a start sees again, and what it does not.

use std::time::Duration;

use idempotent_consumer::testkit::EmbeddedBroker;
use idempotent_consumer::{Decision, Error};

use crate::scripted::Scripted;
use crate::support::*;

// C008, C009
#[test]
fn a_restart_after_a_clean_stop_sees_nothing_again() {
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    produce(&broker, 0, &[("order-1", "a"), ("order-2", "b")]);
    let (_, report) = consume(builder(&broker), sled(dir.path()), 2);
    let positions: Vec<_> = report.positions.values().map(|next| next.get()).collect();
    assert_eq!(positions, [2]);
    produce(&broker, 0, &[("order-3", "c"), ("order-1", "a")]);
    let (effects, report) = consume(builder(&broker), sled(dir.path()), 1);
    assert_eq!(effects, ["0:2:order-3=c"]);
    assert_eq!((report.counts.redelivery, report.counts.in_doubt), (0, 0));
}

// C007
#[test]
fn ten_partitions_and_a_restart_between_two_records_of_each_lose_and_repeat_none() {
    let (broker, store) = (broker(10), Scripted::new());
    for partition in 0..10 {
        produce(&broker, partition, &[(&format!("first-{partition}"), "a")]);
    }
    let (first, _) = consume(builder(&broker), store.clone(), 10);
    for partition in 0..10 {
        produce(&broker, partition, &[(&format!("second-{partition}"), "b")]);
    }
    let (second, report) = consume(builder(&broker), store, 10);
    let mut all: Vec<_> = first.into_iter().chain(second).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 20);
    assert_eq!((report.counts.new, report.counts.redelivery), (10, 0));
}

/// Consumes `count` records with a store that keeps them and a group that learns nothing of it.
fn consume_untold(broker: &EmbeddedBroker, store: &Scripted, count: usize) {
    broker.refuse_commits(&["UNKNOWN"; 1_000]);
    // Long enough for its lanes to end also on a busy machine; the refusals take all of it.
    let hasty = builder(broker).drain_limit(Duration::from_secs(2));
    let running = Running::start(hasty, store.clone(), |_| Ok(()));
    running.wait(count);
    running.wait_for("the marks", || store.marks() >= count);
    running.stop.cancel();
    let refused = running.error();
    assert!(matches!(refused, Error::Source(_)), "{refused}");
    broker.accept_commits();
}

// C046
#[test]
fn a_group_without_offsets_handles_nothing_again_and_is_brought_to_the_end_of_the_log() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..300);
    consume_untold(&broker, &store, 300);
    let operator = Operator::new(&broker);
    assert_eq!(operator.committed(0), None);
    let running = Running::start(builder(&broker), store.clone(), |_| Ok(()));
    running.wait_for("the end of the log", || operator.committed(0) == Some(300));
    let effects = running.effects.clone();
    let report = running.stop();
    assert_eq!(effects.list(), [] as [&str; 0]);
    assert_eq!((report.counts.new, report.counts.redelivery), (0, 300));
    assert_eq!(operator.committed(0), Some(300));
    let mut calls = store.calls().into_iter().rev();
    let commit = calls.find(|call| call.starts_with("commit"));
    assert!(commit.unwrap().ends_with("..300"), "by comparison alone");
}

#[test]
fn a_group_that_is_behind_the_store_goes_on_with_the_first_new_record() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..15);
    consume(builder(&broker), store.clone(), 15);
    produce_numbered(&broker, 0, 15..20);
    consume_untold(&broker, &store, 5);
    assert_eq!(Operator::new(&broker).committed(0), Some(15));
    produce_numbered(&broker, 0, 20..22);
    let (effects, report) = consume(builder(&broker), store, 2);
    assert_eq!(
        effects,
        ["0:20:order-20=order-20", "0:21:order-21=order-21"]
    );
    assert_eq!((report.counts.new, report.counts.redelivery), (2, 5));
}

// C027
#[test]
fn a_new_group_begins_at_the_oldest_record_unless_latest_is_asked_for() {
    let broker = broker(1);
    produce_numbered(&broker, 0, 0..5);
    let mut latest = config(&broker);
    latest.set("auto.offset.reset", "latest");
    let running = Running::start(builder_with(latest), Scripted::new(), |_| Ok(()));
    // There is no telling when it has been assigned but by what it handles.
    let mut n = 5;
    running.wait_for("a record behind the start", || {
        produce_numbered(&broker, 0, n..n + 1);
        n += 1;
        running.effects.len() > 0
    });
    let first = running.effects.list().remove(0);
    running.stop();
    let offset: u32 = first.split(':').nth(1).unwrap().parse().unwrap();
    assert!(offset >= 5, "{first}");

    let mut other = config(&broker);
    other.set("group.id", "another");
    let (effects, _) = consume(builder_with(other), Scripted::new(), 5);
    assert_eq!(effects.first().unwrap(), "0:0:order-0=order-0");
}

#[test]
fn decisions_have_the_names_that_metrics_use() {
    let names = [
        Decision::New,
        Decision::Redelivery,
        Decision::Duplicate,
        Decision::Mismatch,
        Decision::MissingKey,
    ]
    .map(Decision::name);
    assert_eq!(
        names,
        ["new", "redelivery", "duplicate", "mismatch", "missing_key"]
    );
}
