//! Partitions on which nothing happens, and then something does.

use std::time::Duration;

use crate::scripted::Scripted;
use crate::support::*;

fn count(store: &Scripted, call: &str) -> usize {
    let calls = store.calls();
    calls.iter().filter(|made| made.starts_with(call)).count()
}

/// Has a second member come and go `times` over, each time with two rebalances.
fn come_and_go(broker: &idempotent_consumer::testkit::EmbeddedBroker, times: usize) {
    for _ in 0..times {
        let store = Scripted::new();
        let visitor = Running::start(builder(broker), store.clone(), |_| Ok(()));
        visitor.wait_for("its share", || !store.calls().is_empty());
        visitor.stop();
    }
}

// C023
#[test]
fn partitions_that_were_silent_through_rebalances_are_all_read_when_something_comes() {
    let (broker, store) = (broker(8), Scripted::new());
    let running = Running::start(builder(&broker), store.clone(), |_| Ok(()));
    running.wait_for("all partitions", || count(&store, "lease") == 8);
    come_and_go(&broker, 2);
    running.wait_for("them again", || {
        count(&store, "lease") == count(&store, "release") + 8
    });
    for partition in 0..8 {
        produce(&broker, partition, &[(&format!("order-{partition}"), "a")]);
    }
    running.wait(8);
    let effects = running.effects.sorted();
    running.stop();
    let expected: Vec<_> = (0..8).map(|n| format!("{n}:0:order-{n}=a")).collect();
    assert_eq!(effects, expected);
}

// C038
#[test]
fn rebalances_alone_move_no_offset() {
    let (broker, store) = (broker(2), Scripted::new());
    produce_numbered(&broker, 0, 0..3);
    consume(builder(&broker), store.clone(), 3);
    let operator = Operator::new(&broker);
    let unmoved = || (operator.committed(0), operator.committed(1)) == (Some(3), None);
    assert!(unmoved());
    let often = builder(&broker).offset_interval(Duration::ZERO);
    let running = Running::start(often, store.clone(), |_| Ok(()));
    running.wait_for("both partitions", || count(&store, "lease") >= 4);
    for _ in 0..10 {
        come_and_go(&broker, 1);
        assert!(unmoved(), "{:?}", operator.committed(1));
    }
    let report = running.stop();
    assert!(unmoved());
    assert_eq!(report.counts.new, 0);
    assert_eq!((store.head(0), store.head(1)), (Some(3), None));
}

// C037
#[test]
fn what_was_in_flight_at_a_revocation_takes_no_room_when_the_partition_comes_back() {
    const ROOM: u32 = 10;
    let (broker, store) = (broker(2), Scripted::new());
    for partition in 0..2 {
        produce_numbered(&broker, partition, 0..1);
        let base = 100 * (u32::try_from(partition).unwrap() + 1);
        produce_numbered(&broker, partition, base..base + 5 * ROOM);
    }
    store.block(true);
    let hasty = builder(&broker)
        .uncommitted_records_max(ROOM as usize)
        .drain_limit(Duration::from_millis(50));
    let running = Running::start(hasty, store.clone(), |_| Ok(()));
    running.wait_for("both partitions to be full", || {
        running.effects.len() >= ROOM as usize && store.waiting() > 0
    });
    // Both are revoked while nothing can be committed, and one at least comes back.
    let other = Scripted::new();
    let visitor = Running::start(builder(&broker), other.clone(), |_| Err("not mine".into()));
    visitor.wait_for("its share", || !other.calls().is_empty());
    // It never succeeds, so that nothing but what comes back can bring the end.
    let _failed = visitor.error();
    store.block(false);
    let operator = Operator::new(&broker);
    let end = i64::from(5 * ROOM) + 1;
    running.wait_for("the end of both", || {
        operator.committed(0) == Some(end) && operator.committed(1) == Some(end)
    });
    running.stop_hasty();
}
