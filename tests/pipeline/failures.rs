//! Handlers that fail.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idempotent_consumer::{
    Delivery, Effects, Error, Handler, HandlerError, HandlerResult, RetryPolicy,
};
use tokio_util::sync::CancellationToken;

use crate::scripted::Scripted;
use crate::support::*;

fn attempts(max: u32) -> RetryPolicy {
    RetryPolicy::exponential(max, Duration::from_millis(1), Duration::from_millis(2))
}

// C016, C058
#[test]
fn a_record_that_fails_is_tried_again_in_its_place_and_counted() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a"), ("order-2", "b")]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let running = Running::start(
        builder(&broker).retry(attempts(3)),
        store,
        move |delivery| {
            let (offset, attempt) = (delivery.offset(), delivery.attempt());
            noted.lock().unwrap().push((offset, attempt));
            if offset == 0 && attempt < 3 {
                return Err("not yet".into());
            }
            Ok(())
        },
    );
    running.wait(2);
    let effects = running.effects.list();
    let report = running.stop();
    assert_eq!(*seen.lock().unwrap(), [(0, 1), (0, 2), (0, 3), (1, 1)]);
    assert_eq!(effects, ["0:0:order-1=a", "0:1:order-2=b"]);
    assert_eq!((report.counts.retried, report.counts.new), (2, 2));
}

// C002, C004, C005, C024; trap 12
#[test]
fn when_attempts_are_used_up_the_consumer_stops_and_the_record_comes_again() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(
        &broker,
        0,
        &[("a", "1"), ("b", "2"), ("bad", "3"), ("d", "4"), ("e", "5")],
    );
    let mend = Gate::default();
    let start = || {
        let mended = mend.clone();
        Running::start(builder(&broker), store.clone(), move |delivery| {
            if delivery.key() == Some(b"bad") && !mended.is_open() {
                return Err("out of stock".into());
            }
            Ok(())
        })
    };
    let operator = Operator::new(&broker);
    for round in 1..=2 {
        // A refused commit must not carry the record away with it.
        broker.refuse_commits(&["REBALANCE_IN_PROGRESS"]);
        let running = start();
        let effects = running.effects.clone();
        let error = running.error();
        let Error::Handler { at, attempts, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!((at.to_string().as_str(), *attempts), ("orders[0]@2", 2));
        assert!(error.to_string().contains("out of stock"), "{error}");
        let handled = if round == 1 { 2 } else { 0 };
        assert_eq!(
            effects.len(),
            handled,
            "nothing behind it: {:?}",
            effects.list()
        );
        assert_eq!(store.head(0), Some(2));
        assert_eq!(operator.committed(0), Some(2));
    }
    mend.open();
    let running = start();
    running.wait(3);
    let effects = running.effects.list();
    running.stop();
    assert_eq!(effects, ["0:2:bad=3", "0:3:d=4", "0:4:e=5"]);
    assert_eq!(operator.committed(0), Some(5));
}

// C059
#[test]
fn a_rejected_record_is_not_tried_again() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a")]);
    let calls = Arc::new(AtomicU32::new(0));
    let called = Arc::clone(&calls);
    let running = Running::start(builder(&broker).retry(attempts(9)), store, move |_| {
        called.fetch_add(1, Ordering::SeqCst);
        Err(HandlerError::reject("no such product"))
    });
    let error = running.error();
    assert!(
        matches!(error, Error::Handler { attempts: 1, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("no such product"), "{error}");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert_eq!(Operator::new(&broker).committed(0), None);
}

#[test]
fn a_handler_that_panics_has_failed_and_the_consumer_goes_on() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a"), ("order-2", "b")]);
    let running = Running::start(builder(&broker), store, |delivery| {
        assert!(delivery.attempt() > 1, "first try");
        Ok(())
    });
    running.wait(2);
    let report = running.stop();
    assert_eq!((report.counts.new, report.counts.retried), (2, 2));
}

#[test]
fn a_handler_that_always_panics_is_named_with_its_message() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a")]);
    let running = Running::start(builder(&broker), store, |_| panic!("a bug of mine"));
    let error = running.error();
    assert!(
        matches!(error, Error::Handler { attempts: 2, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("a bug of mine"), "{error}");
}

/// Panics before there is a future.
struct Eager;

impl Handler for Eager {
    #[allow(clippy::manual_async_fn)]
    fn handle(
        &self,
        delivery: &Delivery<'_>,
        _effects: &mut Effects,
    ) -> impl Future<Output = HandlerResult> {
        assert!(delivery.attempt() > 1, "an eager bug");
        async { Err("a late bug".into()) }
    }
}

#[test]
fn a_handler_that_panics_before_it_gives_a_future_has_failed_too() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a")]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let consumer = builder(&broker).build(store).unwrap();
    let error = runtime.block_on(async {
        let run = consumer.run_handler(Eager, CancellationToken::new());
        let limited = tokio::time::timeout(DEADLINE, run).await;
        limited.expect("an end in time").unwrap_err()
    });
    assert!(error.to_string().contains("a late bug"), "{error}");
}

#[test]
fn work_of_other_partitions_is_committed_when_one_fails() {
    let (broker, store) = (broker(2), Scripted::new());
    produce(&broker, 0, &[("bad", "x")]);
    produce_numbered(&broker, 1, 0..20);
    let operator = Operator::new(&broker);
    let (others, other_done) = (Gate::default(), Gate::default());
    let (fails, done) = (others.clone(), other_done.clone());
    // Never asked for by time: what is committed at the end is.
    let late = builder(&broker).offset_interval(Duration::from_secs(3600));
    let running = Running::start(late, store.clone(), move |delivery| {
        if delivery.partition() == 0 {
            done.pass();
            return Err("broken".into());
        }
        if delivery.offset() == 19 {
            fails.open();
        }
        Ok(())
    });
    running.wait(20);
    other_done.open();
    let error = running.error();
    assert!(matches!(error, Error::Handler { .. }), "{error}");
    assert_eq!((store.head(0), store.head(1)), (None, Some(20)));
    assert_eq!(
        (operator.committed(0), operator.committed(1)),
        (None, Some(20))
    );
}

#[test]
fn a_stop_during_a_pause_between_attempts_does_not_wait_for_it() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a")]);
    let (tried, patient) = (Gate::default(), Duration::from_secs(3600));
    let first = tried.clone();
    let policy = RetryPolicy::exponential(5, patient, patient);
    let running = Running::start(builder(&broker).retry(policy), store.clone(), move |_| {
        first.open();
        Err("not yet".into())
    });
    tried.pass();
    let report = running.stop();
    // No other attempt followed the one that failed.
    assert_eq!((report.counts.new, report.counts.retried), (0, 0));
    assert_eq!(store.head(0), None);
    // It comes again.
    let (effects, _) = consume(builder(&broker), store, 1);
    assert_eq!(effects, ["0:0:order-1=a"]);
}

#[test]
fn only_errors_that_the_policy_covers_are_tried_again_and_panics_always_are() {
    let covers = |error: &(dyn std::error::Error + 'static)| !error.is::<std::io::Error>();
    for (bad, tried) in [("malformed", 1), ("unlucky", 3), ("panicking", 3)] {
        let (broker, store) = (broker(1), Scripted::new());
        produce(&broker, 0, &[(bad, "a")]);
        let policy = attempts(3).only(covers);
        let running =
            Running::start(
                builder(&broker).retry(policy),
                store,
                |delivery| match delivery.key() {
                    Some(b"malformed") => Err(std::io::Error::other("malformed").into()),
                    Some(b"unlucky") => Err("not yet".into()),
                    _ => panic!("broken"),
                },
            );
        let error = running.error();
        let Error::Handler { attempts, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(*attempts, tried, "{error}");
        assert_eq!(Operator::new(&broker).committed(0), None);
    }
}

// C025
#[test]
fn a_copy_of_a_record_that_failed_and_came_again_takes_no_effect() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a")]);
    let failing = Running::start(builder(&broker), store.clone(), |_| Err("broken".into()));
    let error = failing.error();
    assert!(matches!(error, Error::Handler { .. }), "{error}");
    let (effects, _) = consume(builder(&broker), store.clone(), 1);
    assert_eq!(effects, ["0:0:order-1=a"]);
    // As whoever kept the failed record sends it again.
    produce(&broker, 0, &[("order-1", "a"), ("order-2", "b")]);
    let (effects, report) = consume(builder(&broker), store, 1);
    assert_eq!(effects, ["0:2:order-2=b"]);
    assert_eq!(report.counts.duplicate, 1);
}
