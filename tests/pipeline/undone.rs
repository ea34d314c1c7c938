//! What is left undone, below what is done: told to the group, kept over a crash, and finished first
//! where a partition is given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use idempotent_consumer::{Delivery, Error, HandlerError, Ordering};

use crate::concurrent::{Doors, gaps, many, start};
use crate::scripted::Scripted;
use crate::support::*;

#[test]
fn the_group_is_told_of_the_lowest_unfinished_record_and_what_is_done_above_it_is_not_repeated() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..10);
    let doors = Doors::shut(&["order-0", "order-4"]);
    let builder = || many(builder(&broker), Ordering::Unordered).offset_interval(Duration::ZERO);
    let running = start(
        builder(),
        store.clone(),
        doors.clone(),
        Arc::default(),
        |_| Ok(()),
    );
    running.wait(8);
    running.wait_for("the marks", || store.marks() == 8);
    assert_eq!(gaps(&store), [(0, 1), (4, 5)]);
    doors.open("order-0");
    let operator = Operator::new(&broker);
    running.wait_for("the lowest", || operator.committed(0) == Some(4));
    // A crash: the store fails from here on, and what it has is all that is left.
    store.fail_after(0);
    doors.open("order-4");
    let error = running.error();
    assert!(matches!(error, Error::Store(_)), "{error}");
    store.mend();
    let (effects, report) = consume(builder(), store.clone(), 1);
    assert_eq!(effects, ["0:4:order-4=order-4"]);
    assert_eq!((report.counts.new, report.counts.in_doubt), (1, 1));
    assert_eq!(operator.committed(0), Some(10));
    assert_eq!(gaps(&store), []);
}

#[test]
fn a_record_that_fails_for_good_stops_the_consumer_and_what_else_took_effect_is_marked() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..20);
    let doors = Doors::shut(&["order-3", "order-7"]);
    let builder = || many(builder(&broker), Ordering::Key);
    let running = start(
        builder(),
        store.clone(),
        doors.clone(),
        Arc::default(),
        |delivery| {
            if delivery.offset() == 3 {
                return Err(HandlerError::reject("not this one"));
            }
            Ok(())
        },
    );
    running.wait(18);
    // The seventh is in its handler while the third ends it all.
    doors.open("order-3");
    let effects = running.effects.clone();
    running.wait_for("the failure", || store.marks() == 18);
    doors.open("order-7");
    let error = running.error();
    assert!(
        matches!(&error, Error::Handler { at, .. } if at.offset() == 3),
        "{error}"
    );
    assert_eq!(effects.len(), 19);
    assert_eq!((store.marks(), gaps(&store)), (19, vec![(3, 4)]));
    let operator = Operator::new(&broker);
    assert_eq!(operator.committed(0), Some(3));
    let (effects, report) = consume(builder(), store.clone(), 1);
    assert_eq!(
        (effects, report.counts.in_doubt),
        (vec!["0:3:order-3=order-3".to_owned()], 0)
    );
    assert_eq!(operator.committed(0), Some(20));
}

#[test]
fn a_partition_that_is_given_up_leaves_nothing_undone_below_what_is_done() {
    let (broker, store) = (broker(1), Scripted::new());
    // Three of one customer, and one of another behind them.
    produce(
        &broker,
        0,
        &[("a", "1"), ("a", "2"), ("a", "3"), ("b", "4"), ("a", "5")],
    );
    let doors = Doors::shut(&["1"]);
    let builder = || many(builder(&broker), Ordering::Key).key(idempotent_consumer::key::value());
    let running = start(
        builder(),
        store.clone(),
        doors.clone(),
        Arc::default(),
        |_| Ok(()),
    );
    running.wait(1);
    running.wait_for("the mark", || store.marks() == 1);
    assert_eq!(gaps(&store), [(0, 3)]);
    running.stop.cancel();
    doors.open("1");
    let effects = running.effects.clone();
    let report = running.end().unwrap();
    // The last one is behind all that was begun: it is left to whoever comes next, unless its turn
    // came before the stop was seen.
    let effects = effects.list();
    assert_eq!(effects[..4], ["0:3:b=4", "0:0:a=1", "0:1:a=2", "0:2:a=3"]);
    let done = i64::try_from(effects.len()).unwrap();
    assert_eq!((store.head(0), gaps(&store)), (Some(done), vec![]));
    assert_eq!(report.counts.new, done.unsigned_abs());
    assert_eq!(Operator::new(&broker).committed(0), Some(done));
}

#[test]
fn what_was_under_way_at_a_revocation_counts_for_nothing_afterwards() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..10);
    let (gate, inside) = (Gate::default(), Arc::new(AtomicUsize::new(0)));
    let (held, entered) = (gate.clone(), Arc::clone(&inside));
    let builder = |limit| {
        builder(&broker)
            .ordering(Ordering::Unordered)
            .max_concurrency(10)
            .drain_limit(limit)
    };
    let first = Running::run(
        builder(Duration::from_millis(50)),
        store.clone(),
        async move |_: &Delivery<'_>, _: &mut _| {
            entered.fetch_add(1, SeqCst);
            held.passed().await;
            Err(HandlerError::reject("too late"))
        },
    );
    first.wait_for("all of them", || inside.load(SeqCst) == 10);
    // Ten are in flight when it ends, and it does not wait for them.
    first.stop.cancel();
    let _late = first.end();
    let (effects, report) = consume(builder(Duration::from_secs(20)), Scripted::new(), 10);
    gate.open();
    assert_eq!((effects.len(), report.counts.new), (10, 10));
}
