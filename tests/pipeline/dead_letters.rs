//! Records that cannot be handled, where there is a dead-letter topic.

use std::time::{Duration, Instant};

use idempotent_consumer::testkit::{EmbeddedBroker, Produced};
use idempotent_consumer::{
    DeadLetter, DeadLetterError, Delivery, Error, HandlerError, HandlerResult, Ordering,
    RetryPolicy,
};
use rdkafka::Message as _;

use crate::letters::*;
use crate::scripted::Scripted;
use crate::support::*;

fn judge(delivery: &Delivery<'_>) -> HandlerResult {
    match delivery.key() {
        Some(b"rejected") => Err(HandlerError::reject("no such account")),
        Some(b"failing") => Err("out of stock".into()),
        Some(b"panicking") => panic!("broken"),
        Some(b"malformed") => Err(std::io::Error::other("malformed").into()),
        _ => Ok(()),
    }
}

fn is_settled(store: &Scripted, next: i64) -> bool {
    store.head(0) == Some(next) && store.gaps_of(0).is_empty()
}

/// Starts once more, and sees that no letter is written again.
fn assert_over(broker: &EmbeddedBroker, store: &Scripted, count: i64) {
    let before = written(broker);
    produce(broker, 0, &[("last", "l")]);
    let (effects, report) = consume(burying(broker), store.clone(), 1);
    assert_eq!(effects, [format!("0:{count}:last=l")]);
    assert_eq!(report.counts.dead_lettered, 0);
    assert_eq!(written(broker), before);
}

// C005, C016, C019
#[test]
fn what_is_given_up_becomes_a_letter_and_a_mark_and_what_is_behind_it_goes_on() {
    let headers: &[(&str, Option<&[u8]>)] = &[("id", Some(b"\xff")), ("id", None)];
    let keyed = |key: &'static str, value| Produced {
        key: Some(key.as_bytes()),
        value,
        ..Produced::default()
    };
    let records = [
        keyed("good", Some(b"1")),
        Produced {
            headers,
            ..keyed("rejected", Some(b"\0\xff"))
        },
        keyed("failing", None),
        keyed("panicking", Some(b"")),
        keyed("malformed", Some(b"4")),
        keyed("better", Some(b"5")),
    ];
    let policy = || {
        let short = Duration::from_millis(1);
        RetryPolicy::exponential(2, short, short).only(|error| !error.is::<std::io::Error>())
    };
    for ordering in ORDERINGS {
        let (broker, store) = (broker_with_letters(1), Scripted::new());
        broker.produce(TOPIC, &records).unwrap();
        let builder = burying(&broker).ordering(ordering).retry(policy());
        let running = Running::start(builder, store.clone(), judge);
        running.wait_for("all of it", || is_settled(&store, 6));
        let effects = running.effects.sorted();
        let counts = running.stop().counts;
        assert_eq!(effects, ["0:0:good=1", "0:5:better=5"]);
        assert_eq!((counts.new, counts.retried), (2, 2), "{ordering:?}");
        assert_eq!(counts.dead_lettered, 4);
        let found = letters(&broker);
        let said: Vec<_> = found.iter().map(told).collect();
        let expected = [
            "rejected: Reject, 1",
            "failing: Handler, 2",
            "panicking: Handler, 2",
            "malformed: Reject, 1",
        ];
        assert_eq!(said, expected, "{ordering:?}");
        for (letter, record) in found.iter().zip(&records[1..]) {
            assert_eq!((letter.key(), letter.payload()), (record.key, record.value));
        }
        assert_eq!(header(&found[0], "id"), Some(&b"\xff"[..]));
        let marked = [false, true, true, true, true, false];
        let marked: Vec<_> = (0..).zip(marked).collect();
        assert_eq!(marks(&store, 0), marked, "{ordering:?}");
        assert_eq!(Operator::new(&broker).committed(0), Some(6));
        assert_over(&broker, &store, 6);
    }
}

#[test]
fn the_letter_comes_first_then_the_mark_then_the_offset() {
    for ordering in ORDERINGS {
        let (broker, store) = (broker_with_letters(1), Scripted::new());
        produce(&broker, 0, &[("rejected", "x")]);
        store.block(true);
        // So that a mark that does not wait for its letter comes before it.
        let slow = letters_with("linger.ms", "300");
        let builder = burying(&broker).ordering(ordering).dead_letter(slow);
        let running = Running::start(builder, store.clone(), judge);
        running.wait_for("the mark's commit", || store.waiting() > 0);
        assert_eq!(written(&broker), 1, "{ordering:?}");
        let operator = Operator::new(&broker);
        assert_eq!((marks(&store, 0), operator.committed(0)), (vec![], None));
        store.block(false);
        running.wait_for("the offset", || operator.committed(0) == Some(1));
        assert_eq!(marks(&store, 0), [(0, true)]);
        running.stop();
        assert_eq!(written(&broker), 1);
    }
}

// C006
#[test]
fn a_letter_that_cannot_be_written_stops_the_consumer_and_nothing_has_moved() {
    let large = "x".repeat(4_000);
    for ordering in ORDERINGS {
        let (broker, store) = (broker_with_letters(1), Scripted::new());
        let records = [("before", "1"), ("rejected", &large), ("behind", "3")];
        produce(&broker, 0, &records);
        let small = letters_with("message.max.bytes", "2000");
        let builder = burying(&broker).ordering(ordering).dead_letter(small);
        let running = Running::start(builder, store.clone(), judge);
        let first = running.effects.clone();
        let error = running.error();
        let Error::DeadLetter(DeadLetterError::Letter { at, .. }) = &error else {
            panic!("{error}")
        };
        assert_eq!(at.to_string(), "orders[0]@1");
        assert!(error.to_string().contains("message.max.bytes"), "{error}");
        assert_eq!(written(&broker), 0);
        let marked = marks(&store, 0);
        assert!(marked.iter().all(|(offset, dead)| *offset != 1 && !dead));
        let operator = Operator::new(&broker);
        assert_eq!(operator.committed(0), Some(1), "{ordering:?}");
        // It is handled again, and now there is nothing wrong with it.
        let running = Running::start(burying(&broker), store.clone(), |_| Ok(()));
        running.wait_for("the rest", || is_settled(&store, 3));
        let mut effects = first.list();
        effects.extend(running.effects.list());
        running.stop();
        effects.sort();
        let rejected = format!("0:1:rejected={large}");
        let expected = ["0:0:before=1", &rejected, "0:2:behind=3"];
        assert_eq!(effects, expected, "{ordering:?}");
        assert_eq!((written(&broker), operator.committed(0)), (0, Some(3)));
    }
}

#[test]
fn a_crash_between_letter_and_mark_writes_a_second_letter_and_loses_none() {
    for ordering in ORDERINGS {
        let (broker, store) = (broker_with_letters(1), Scripted::new());
        produce(&broker, 0, &[("rejected", "x")]);
        let start = || {
            let builder = burying(&broker).ordering(ordering);
            Running::start(builder, store.clone(), judge)
        };
        store.fail_after(0);
        let error = start().error();
        assert!(matches!(error, Error::Store(_)), "{error}");
        assert_eq!((written(&broker), marks(&store, 0)), (1, vec![]));
        let operator = Operator::new(&broker);
        assert_eq!(operator.committed(0), None, "{ordering:?}");
        store.mend();
        let running = start();
        running.wait_for("the mark", || is_settled(&store, 1));
        running.stop();
        assert_eq!((written(&broker), marks(&store, 0)), (2, vec![(0, true)]));
        assert_eq!(operator.committed(0), Some(1));
        assert_over(&broker, &store, 1);
    }
}

#[test]
fn a_dead_letter_topic_that_is_missing_is_refused_before_the_group_is_joined() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a")]);
    let nowhere = builder(&broker).dead_letter(DeadLetter::to_topic("nowhere"));
    let begun = Instant::now();
    let running = Running::start(nowhere, store.clone(), |_| Ok(()));
    let effects = running.effects.clone();
    let error = running.error();
    assert!(
        matches!(error, Error::DeadLetter(DeadLetterError::Topic { .. })),
        "{error}"
    );
    assert!(error.to_string().contains("nowhere"), "{error}");
    assert_eq!((effects.len(), store.calls()), (0, vec![]));
    // It is missing, not late: that is not waited for, which would be for half a minute.
    assert!(begun.elapsed() < Duration::from_secs(25));
}

// C002
#[test]
fn a_letter_does_not_move_the_offset_past_a_lower_record_that_is_not_done() {
    let (broker, store) = (broker_with_letters(2), Scripted::new());
    produce(&broker, 0, &[("held", "1"), ("rejected", "2")]);
    produce(&broker, 1, &[("other", "o")]);
    let start = |held: Gate, fails: bool| {
        // Only the lower record's letter is too large.
        let small = letters_with("message.max.bytes", "2000");
        let builder = burying(&broker)
            .ordering(Ordering::Unordered)
            .dead_letter(small);
        let handler = async move |delivery: &Delivery<'_>, _: &mut _| {
            if delivery.key() == Some(b"held") {
                held.passed().await;
                if fails {
                    return Err(HandlerError::reject("y".repeat(4_000)));
                }
            }
            judge(delivery)
        };
        Running::run(builder, store.clone(), handler)
    };
    let (held, operator) = (Gate::default(), Operator::new(&broker));
    let running = start(held.clone(), true);
    running.wait_for("the mark", || store.gaps_of(0) == [(0, 1)]);
    assert_eq!((written(&broker), marks(&store, 0)), (1, vec![(1, true)]));
    // Offsets go on meanwhile.
    for count in 1..=3 {
        produce(&broker, 1, &[(&format!("more-{count}"), "m")]);
        let next = Some(i64::from(count) + 1);
        running.wait_for("the other partition", || operator.committed(1) == next);
        assert_eq!(operator.committed(0).unwrap_or(0), 0);
    }
    held.open();
    let error = running.error();
    assert!(matches!(error, Error::DeadLetter(_)), "{error}");
    assert_eq!(written(&broker), 1);
    assert_eq!(operator.committed(0).unwrap_or(0), 0);
    // Then the lower one alone is handled again.
    let running = start(held, false);
    running.wait_for("the lower record", || is_settled(&store, 2));
    let effects = running.effects.list();
    let report = running.stop();
    assert_eq!(
        (effects, report.counts.dead_lettered),
        (vec!["0:0:held=1".to_owned()], 0)
    );
    assert_eq!((written(&broker), operator.committed(0)), (1, Some(2)));
}

#[test]
fn what_fails_when_nobody_waits_for_it_any_more_is_not_buried() {
    for ordering in ORDERINGS {
        let (broker, store) = (broker_with_letters(1), Scripted::new());
        produce(&broker, 0, &[("order-1", "a")]);
        let (started, gate) = (Gate::default(), Gate::default());
        let (begun, end) = (started.clone(), gate.clone());
        let builder = burying(&broker)
            .ordering(ordering)
            .retry(RetryPolicy::never())
            .drain_limit(Duration::from_millis(50));
        let running = Running::start(builder, store.clone(), move |_| {
            begun.open();
            end.pass();
            Err("its runtime is gone".into())
        });
        running.wait_for("the handler", || started.is_open());
        running.stop.cancel();
        let error = running.error();
        assert!(matches!(error, Error::DrainTimeout { .. }), "{error}");
        gate.open();
        wait_for("the late lane's end", || {
            store.calls().iter().any(|call| call.starts_with("release"))
        });
        assert_eq!((store.head(0), written(&broker)), (None, 0), "{ordering:?}");
    }
}

#[test]
fn a_pattern_that_matches_the_topic_of_the_letters_ends_the_consumer() {
    let broker = broker_with_letters(1);
    let running = Running::start(
        burying(&broker).topics(["^orders.*"]),
        Scripted::new(),
        |_| Ok(()),
    );
    let error = running.error();
    assert!(
        matches!(
            &error,
            Error::DeadLetter(DeadLetterError::Subscribed { topic }) if topic == LETTERS
        ),
        "{error}"
    );
}
