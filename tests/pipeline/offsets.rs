//! What the group is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::scripted::Scripted;
use crate::support::*;

const NEVER: Duration = Duration::from_secs(3600);

// C008, C009
#[test]
fn by_interval_the_group_has_the_offset_behind_the_last_record() {
    let (broker, store) = (broker(1), Scripted::new());
    let often = builder(&broker).offset_interval(Duration::from_millis(10));
    let running = Running::start(often, store, |_| Ok(()));
    let operator = Operator::new(&broker);
    for n in 0..5 {
        produce_numbered(&broker, 0, n..n + 1);
        running.wait_for("the commit", || {
            operator.committed(0) == Some(i64::from(n) + 1)
        });
    }
    running.stop();
    assert_eq!(operator.committed(0), Some(5));
}

#[test]
fn at_the_end_the_group_has_the_offset_behind_the_last_record() {
    let (broker, store) = (broker(3), Scripted::new());
    for partition in 0..3 {
        produce_numbered(&broker, partition, 0..1);
    }
    // Copies move the offset too: the first of the three is the one that is handled.
    let running = Running::start(
        builder(&broker).offset_interval(NEVER),
        store.clone(),
        |_| Ok(()),
    );
    running.wait_for("all records", || (0..3).all(|p| store.head(p) == Some(1)));
    let operator = Operator::new(&broker);
    running.stop();
    for partition in 0..3 {
        assert_eq!(operator.committed(partition), Some(1));
    }
}

// C038
#[test]
fn nothing_is_committed_where_nothing_was_read() {
    let (broker, store) = (broker(1), Scripted::new());
    let running = Running::start(builder(&broker), store.clone(), |_| Ok(()));
    running.wait_for("the lease", || !store.calls().is_empty());
    running.stop();
    assert_eq!(Operator::new(&broker).committed(0), None);
    assert_eq!(store.calls(), ["lease 0", "release 0"]);
}

// C010, C012
#[test]
fn the_groups_offset_only_ever_grows() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..500);
    let often = builder(&broker)
        .offset_interval(Duration::ZERO)
        .uncommitted_records_max(1);
    let stop = Arc::new(AtomicBool::new(false));
    let (watching, operator) = (Arc::clone(&stop), Operator::new(&broker));
    let watcher = std::thread::spawn(move || {
        let mut seen = vec![operator.committed(0)];
        while !watching.load(Ordering::SeqCst) {
            seen.push(operator.committed(0));
        }
        seen.push(operator.committed(0));
        seen
    });
    consume(often, store, 500);
    stop.store(true, Ordering::SeqCst);
    let seen = watcher.join().unwrap();
    assert!(seen.is_sorted(), "{seen:?}");
    assert_eq!(seen.last(), Some(&Some(500)));
}

// C011, C041
#[test]
fn a_refused_commit_is_sent_again_without_further_records() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..7);
    broker.refuse_commits(&["REBALANCE_IN_PROGRESS", "UNKNOWN", "REBALANCE_IN_PROGRESS"]);
    let often = builder(&broker).offset_interval(Duration::from_millis(10));
    let running = Running::start(often, store, |_| Ok(()));
    let operator = Operator::new(&broker);
    running.wait_for("the commit", || operator.committed(0) == Some(7));
    running.stop();
}

#[test]
fn a_refused_commit_at_the_end_is_sent_again() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..7);
    let running = Running::start(
        builder(&broker).offset_interval(NEVER),
        store.clone(),
        |_| Ok(()),
    );
    running.wait_for("the first commit", || store.head(0) == Some(7));
    let operator = Operator::new(&broker);
    // The first commit is due at once; the interval holds up the next.
    running.wait_for("the offset", || operator.committed(0).is_some());
    produce_numbered(&broker, 0, 7..9);
    running.wait_for("all records", || store.head(0) == Some(9));
    broker.refuse_commits(&["REBALANCE_IN_PROGRESS", "UNKNOWN"]);
    running.stop();
    assert_eq!(operator.committed(0), Some(9));
}

// C059
#[test]
fn a_stretch_of_nothing_but_copies_moves_head_and_offset() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a")]);
    let running = Running::start(builder(&broker), store.clone(), |_| Ok(()));
    running.wait(1);
    produce(&broker, 0, &[("order-1", "a"); 9]);
    let operator = Operator::new(&broker);
    running.wait_for("the offset", || operator.committed(0) == Some(10));
    assert_eq!(store.head(0), Some(10));
    assert_eq!(running.stop().counts.duplicate, 9);
}

// C053
#[test]
fn topics_that_do_not_exist_yet_end_nothing() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a")]);
    let both = builder(&broker).topics([TOPIC, "not-there"]);
    let (effects, _) = consume(both, store, 1);
    assert_eq!(effects, ["0:0:order-1=a"]);
}
