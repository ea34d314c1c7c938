//! Ends: asked for, dropped, too late.

use std::time::Duration;

use idempotent_consumer::Error;
use tokio_util::sync::CancellationToken;

use crate::scripted::Scripted;
use crate::support::*;

#[test]
fn a_stop_waits_for_the_record_in_hand_marks_it_and_commits_its_offset() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..3);
    let (started, finish) = (Gate::default(), Gate::default());
    let (begun, end) = (started.clone(), finish.clone());
    let running = Running::start(builder(&broker), store.clone(), move |_| {
        begun.open();
        end.pass();
        Ok(())
    });
    started.pass();
    running.stop.cancel();
    assert!(!running.has_ended());
    finish.open();
    let effects = running.effects.clone();
    let report = running.end().unwrap();
    // One, or the next as well if the stop was noticed late.
    let done = i64::try_from(effects.len()).unwrap();
    assert!(done >= 1);
    assert_eq!(i64::try_from(report.counts.new).unwrap(), done);
    assert_eq!(store.head(0), Some(done));
    assert_eq!(Operator::new(&broker).committed(0), Some(done));
    assert_eq!(store.calls().last().unwrap(), "release 0");
    let (rest, report) = consume(builder(&broker), store, 3 - effects.len());
    assert_eq!(rest.len() + effects.len(), 3);
    assert_eq!((report.counts.redelivery, report.counts.in_doubt), (0, 0));
}

#[test]
fn a_stop_before_the_brokers_have_answered_is_heeded() {
    // It takes connections and says nothing.
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = mute.local_addr().unwrap().to_string();
    let running = Running::start(builder_with(config_at(&at)), Scripted::new(), |_| Ok(()));
    drop(mute.accept().unwrap());
    let begun = std::time::Instant::now();
    running.stop();
    // It would give up by itself after half a minute.
    assert!(begun.elapsed() < Duration::from_secs(25));
}

#[test]
fn a_stop_ends_within_its_limit_where_the_brokers_are_gone() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..1);
    let limited = builder(&broker).drain_limit(Duration::from_secs(2));
    let running = Running::start(limited, store.clone(), |_| Ok(()));
    running.wait(1);
    drop(broker);
    let begun = std::time::Instant::now();
    running.stop.cancel();
    // What the group was not told of is an error; the mark is there.
    drop(running.end());
    // The limit, the two seconds that leaving has at least, and a busy machine.
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(store.head(0), Some(1));
}

#[test]
fn dropping_the_future_stops_the_consumer_in_order() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..3);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let handled = Effects::default();
    let (noted, consumer) = (
        handled.clone(),
        builder(&broker).build(store.clone()).unwrap(),
    );
    runtime.block_on(async {
        let run = consumer.run(
            async move |delivery, _| {
                noted.add(effect(delivery));
                Ok(())
            },
            CancellationToken::new(),
        );
        let three = async {
            while handled.len() < 3 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::select! {
            ended = run => panic!("{ended:?}"),
            () = three => {}
        }
    });
    wait_for("the release", || {
        store.calls().last().is_some_and(|call| call == "release 0")
    });
    let operator = Operator::new(&broker);
    wait_for("the offset", || operator.committed(0) == Some(3));
    let (effects, _) = {
        produce_numbered(&broker, 0, 3..4);
        consume(builder(&broker), store, 1)
    };
    assert_eq!(effects, ["0:3:order-3=order-3"]);
}

#[test]
fn a_shutdown_before_the_start_handles_nothing_and_ends() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..3);
    let running = {
        let gate = Gate::default();
        gate.open();
        Running::start(builder(&broker), store, |_| Ok(()))
    };
    running.stop.cancel();
    let effects = running.effects.clone();
    let report = running.end().unwrap();
    assert_eq!(effects.len() as u64, report.counts.new);
}

#[test]
fn work_that_outlasts_the_drain_limit_is_reported_and_moves_no_offset() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..2);
    let (started, finish) = (Gate::default(), Gate::default());
    let (begun, end) = (started.clone(), finish.clone());
    let short = builder(&broker).drain_limit(Duration::from_millis(50));
    let running = Running::start(short, store.clone(), move |_| {
        begun.open();
        end.pass();
        Ok(())
    });
    started.pass();
    running.stop.cancel();
    let error = running.error();
    assert!(
        matches!(error, Error::DrainTimeout { limit_ms: 50, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("orders[0]"), "{error}");
    assert_eq!(store.head(0), None);
    let operator = Operator::new(&broker);
    assert_eq!(operator.committed(0), None);
    // Its effect happens after all: then its mark is true, and keeps it from happening again.
    finish.open();
    wait_for("the late mark", || {
        store.calls().last().is_some_and(|call| call == "release 0")
    });
    assert_eq!((store.head(0), operator.committed(0)), (Some(1), None));
    let (effects, report) = consume(builder(&broker), store, 1);
    assert_eq!(effects, ["0:1:order-1=order-1"]);
    assert_eq!(report.counts.redelivery, 1);
}

#[test]
fn a_stop_while_the_store_hangs_ends_within_the_drain_limit() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..10);
    store.block(true);
    let short = builder(&broker)
        .drain_limit(Duration::from_millis(50))
        .uncommitted_records_max(1);
    let running = Running::start(short, store.clone(), |_| Ok(()));
    running.wait_for("the store to be asked", || store.waiting() > 0);
    running.stop.cancel();
    // Its thread that commits is in the store's hands, and is waited for.
    let unblocked = store.clone();
    let operator = Operator::new(&broker);
    assert_eq!(operator.committed(0), None);
    unblocked.block(false);
    let ended = running.end();
    match ended {
        // The store was back in time.
        Ok(_) => assert_eq!(operator.committed(0), store.head(0)),
        // The store was back in time, and the group's answer did not come in time: it may have it.
        Err(Error::Source(_)) => assert!(operator.committed(0) <= store.head(0)),
        Err(error) => {
            assert!(matches!(error, Error::DrainTimeout { .. }), "{error}");
            assert_eq!(operator.committed(0), None);
        }
    }
}

#[test]
fn a_sled_store_is_free_as_soon_as_the_run_has_returned() {
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    for n in 0..3 {
        produce_numbered(&broker, 0, n..n + 1);
        let (effects, _) = consume(builder(&broker), sled(dir.path()), 1);
        assert_eq!(effects.len(), 1);
        drop(sled(dir.path()));
    }
}
