//! Other records with the key of a dead letter, and records that the key itself makes one.

use std::sync::{Arc, Mutex};

use idempotent_consumer::key::MissingKey;
use idempotent_consumer::testkit::Produced;
use idempotent_consumer::{
    Builder, Claimed, DeadLetterError, Decision, Delivery, Effects as Recorded, Error,
    HandlerError, HandlerResult, Mismatch, Ordering, Pull,
};

use crate::letters::*;
use crate::scripted::Scripted;
use crate::support::*;

type Shown = Arc<Mutex<Vec<String>>>;

/// Notes the copies that are shown, with the results that they are answered with.
fn showing(builder: Builder, shown: &Shown) -> Builder {
    let shown = Arc::clone(shown);
    builder.on_duplicate(move |copy, result| {
        let result = String::from_utf8_lossy(result.unwrap_or(b"none")).into_owned();
        let (partition, offset) = (copy.partition(), copy.offset());
        let copy = format!("{partition}:{offset} {result}");
        shown.lock().unwrap().push(copy);
    })
}

/// Rejects the first record of the first partition, and records something for all others.
fn only_the_first_is_bad(delivery: &Delivery<'_>, effects: &mut Recorded) -> HandlerResult {
    if (delivery.partition(), delivery.offset()) == (0, 0) {
        return Err(HandlerError::reject("no such account"));
    }
    effects.record(&delivery.offset())?;
    Ok(())
}

#[test]
fn a_copy_behind_a_dead_letter_in_the_same_fetch_is_tried_and_the_next_one_is_a_copy_of_it() {
    for ordering in ORDERINGS {
        let (broker, store, shown) = (broker_with_letters(1), Scripted::new(), Shown::default());
        produce(&broker, 0, &[("order-1", "a"); 3]);
        let builder = showing(burying(&broker).ordering(ordering), &shown);
        let running = Running::with(builder, store.clone(), only_the_first_is_bad);
        running.wait_for("the last copy", || !shown.lock().unwrap().is_empty());
        let effects = running.effects.list();
        let counts = running.stop().counts;
        // Whichever of the two finds the key free first, where they need not be in order.
        let in_order = ordering == Ordering::Partition || effects == ["0:1:order-1=a"];
        let (done, copy) = if in_order { (1, 2) } else { (2, 1) };
        assert_eq!(effects, [format!("0:{done}:order-1=a")], "{ordering:?}");
        assert_eq!(*shown.lock().unwrap(), [format!("0:{copy} {done}")]);
        assert_eq!((counts.new, counts.duplicate), (1, 1));
        assert_eq!((counts.dead_lettered, written(&broker)), (1, 1));
        assert_eq!(marks(&store, 0), [(0, true), (done, false)]);
    }
}

#[test]
fn a_copy_elsewhere_is_tried_and_its_success_answers_for_the_key_from_then_on() {
    for ordering in ORDERINGS {
        let (broker, dir) = (broker_with_letters(2), tempfile::tempdir().unwrap());
        let shown = Shown::default();
        let start = || {
            let builder = showing(burying(&broker).ordering(ordering), &shown);
            Running::with(builder, sled(dir.path()), only_the_first_is_bad)
        };
        let operator = Operator::new(&broker);
        produce(&broker, 0, &[("order-1", "a")]);
        let running = start();
        running.wait_for("the letter", || operator.committed(0) == Some(1));
        running.stop();
        assert_eq!(marks(&sled(dir.path()), 0), [(0, true)]);
        // After a restart, so that it is the mark in the store that lets it through.
        produce(&broker, 1, &[("order-1", "a")]);
        let running = start();
        running.wait(1);
        produce(&broker, 0, &[("order-1", "a")]);
        running.wait_for("the copy", || shown.lock().unwrap().len() == 1);
        assert_eq!(running.effects.list(), ["1:0:order-1=a"], "{ordering:?}");
        running.stop();
        // And the store knows it when it is opened again, whichever mark it reads first.
        produce(&broker, 1, &[("order-1", "a")]);
        let running = start();
        running.wait_for("the last copy", || shown.lock().unwrap().len() == 2);
        let effects = running.effects.list();
        let counts = running.stop().counts;
        assert_eq!((effects.len(), counts.new, counts.duplicate), (0, 0, 1));
        assert_eq!(*shown.lock().unwrap(), ["0:1 0", "1:1 0"], "{ordering:?}");
        assert_eq!(written(&broker), 1);
    }
}

/// A key with two values, and no key.
fn produce_what_the_key_condemns(broker: &idempotent_consumer::testkit::EmbeddedBroker) {
    produce(broker, 0, &[("order-7", "A"), ("order-7", "B")]);
    let no_key = Produced {
        value: Some(b"x"),
        ..Produced::default()
    };
    broker.produce(TOPIC, &[no_key]).unwrap();
    produce(broker, 0, &[("end", "e")]);
}

// C006, C060
#[test]
fn a_key_with_another_value_and_a_record_without_a_key_become_letters() {
    for ordering in ORDERINGS {
        let (broker, store) = (broker_with_letters(1), Scripted::new());
        produce_what_the_key_condemns(&broker);
        let start = || {
            let builder = burying(&broker).ordering(ordering);
            Running::start(builder, store.clone(), |_| Ok(()))
        };
        let running = start();
        let settled = || store.head(0) == Some(4) && store.gaps_of(0).is_empty();
        running.wait_for("all of it", settled);
        let effects = running.effects.sorted();
        let counts = running.stop().counts;
        assert_eq!(effects, ["0:0:order-7=A", "0:3:end=e"], "{ordering:?}");
        assert_eq!((counts.dead_lettered, counts.mismatch), (2, 1));
        let said: Vec<_> = letters(&broker).iter().map(told).collect();
        assert_eq!(said, ["order-7: Mismatch, 1", "-: MissingKey, 1"]);
        // What took effect stays so, and no mark says otherwise.
        assert_eq!(marks(&store, 0), [(0, false), (3, false)]);
        assert_eq!(Operator::new(&broker).committed(0), Some(4));
        produce(&broker, 0, &[("order-7", "A"), ("last", "l")]);
        let running = start();
        running.wait(1);
        let counts = running.stop().counts;
        assert_eq!((counts.new, counts.duplicate), (1, 1));
        assert_eq!((counts.dead_lettered, written(&broker)), (0, 2));
    }
}

#[test]
fn a_record_that_passes_without_a_key_and_is_rejected_becomes_a_letter_once() {
    for ordering in ORDERINGS {
        let (broker, store) = (broker_with_letters(1), Scripted::new());
        let no_key = Produced {
            value: Some(b"x"),
            ..Produced::default()
        };
        broker.produce(TOPIC, &[no_key]).unwrap();
        for last in ["one", "two"] {
            produce(&broker, 0, &[(last, "l")]);
            let passing = burying(&broker)
                .ordering(ordering)
                .on_missing_key(MissingKey::PassThrough);
            let running = Running::start(passing, store.clone(), |delivery| {
                delivery
                    .key()
                    .map_or_else(|| Err(HandlerError::reject("no such account")), |_| Ok(()))
            });
            running.wait(1);
            running.stop();
            // It has no mark: that it is dealt with, the position says.
            assert_eq!(written(&broker), 1, "{ordering:?}");
        }
        assert_eq!(marks(&store, 0), [(1, false), (2, false)]);
        let said: Vec<_> = letters(&broker).iter().map(told).collect();
        assert_eq!(said, ["-: Reject, 1"]);
    }
}

// C060
#[test]
fn a_key_with_another_value_stops_all_the_same_where_that_is_the_policy() {
    for ordering in ORDERINGS {
        let (broker, store) = (broker_with_letters(1), Scripted::new());
        produce_what_the_key_condemns(&broker);
        let strict = burying(&broker)
            .ordering(ordering)
            .on_mismatch(Mismatch::Stop);
        let error = Running::start(strict, store, |_| Ok(())).error();
        assert!(matches!(error, Error::Mismatch { .. }), "{error}");
        let has_moved = Operator::new(&broker).committed(0) > Some(1);
        assert!(!has_moved, "{ordering:?}");
        // The one without a key lies behind it, but out of order that is no hindrance.
        let said: Vec<_> = letters(&broker).iter().map(told).collect();
        assert!(
            said.iter().all(|letter| letter.contains("MissingKey")),
            "{said:?}"
        );
    }
}

// C006
#[test]
fn a_letter_about_a_key_that_cannot_be_written_stops_the_consumer_too() {
    for ordering in ORDERINGS {
        for (key, first) in [(Some(&b"order-7"[..]), 1), (None, 0)] {
            let (broker, store) = (broker_with_letters(1), Scripted::new());
            let large = [b'x'; 4_000];
            produce(&broker, 0, &[("order-7", "A")][..first]);
            let record = Produced {
                key,
                value: Some(&large),
                ..Produced::default()
            };
            broker.produce(TOPIC, &[record]).unwrap();
            let small = letters_with("message.max.bytes", "2000");
            let builder = burying(&broker).ordering(ordering).dead_letter(small);
            let error = Running::start(builder, store.clone(), |_| Ok(())).error();
            let Error::DeadLetter(DeadLetterError::Letter { at, .. }) = &error else {
                panic!("{error}")
            };
            let first = i64::try_from(first).unwrap();
            assert_eq!(at.offset(), first);
            let expected = (first > 0).then_some(first);
            assert_eq!(
                Operator::new(&broker).committed(0),
                expected,
                "{ordering:?}"
            );
            assert_eq!(written(&broker), 0);
        }
    }
}

async fn next(pull: &mut Pull) -> Option<Claimed> {
    let next = tokio::time::timeout(DEADLINE, pull.next()).await;
    next.expect("in time")
}

#[test]
fn a_claim_that_is_rejected_or_fails_too_often_becomes_a_letter() {
    let (broker, store) = (broker_with_letters(2), Scripted::new());
    produce(
        &broker,
        0,
        &[("rejected", "a"), ("failing", "b"), ("good", "c")],
    );
    runtime().block_on(async {
        let mut pull = burying(&broker).build(store.clone()).unwrap().pull();
        let rejected = next(&mut pull).await.unwrap();
        rejected.failed(HandlerError::reject("no such account"));
        for attempt in 1..=2 {
            let failing = next(&mut pull).await.unwrap();
            assert_eq!(failing.delivery().unwrap().attempt(), attempt);
            failing.failed("out of stock");
        }
        let good = next(&mut pull).await.unwrap();
        assert_eq!(good.delivery().unwrap().offset(), 2);
        good.done(Recorded::default());
        // A copy of a dead letter is tried.
        produce(&broker, 1, &[("rejected", "a")]);
        let copy = next(&mut pull).await.unwrap();
        assert_eq!(copy.decision(), Decision::New);
        copy.done(Recorded::default());
        let counts = pull.finish().await.unwrap().counts;
        assert_eq!((counts.dead_lettered, counts.new), (2, 2));
    });
    let said: Vec<_> = letters(&broker).iter().map(told).collect();
    assert_eq!(said, ["rejected: Reject, 1", "failing: Handler, 2"]);
    assert_eq!(marks(&store, 0), [(0, true), (1, true), (2, false)]);
    assert_eq!(Operator::new(&broker).committed(0), Some(3));
}

// C006
#[test]
fn a_claim_whose_letter_cannot_be_written_ends_the_pull_and_comes_again() {
    let (broker, store) = (broker_with_letters(1), Scripted::new());
    produce(
        &broker,
        0,
        &[("rejected", &"x".repeat(4_000)), ("good", "c")],
    );
    runtime().block_on(async {
        let small = letters_with("message.max.bytes", "2000");
        let builder = burying(&broker).dead_letter(small);
        let mut pull = builder.build(store.clone()).unwrap().pull();
        let rejected = next(&mut pull).await.unwrap();
        rejected.failed(HandlerError::reject("no such account"));
        assert!(next(&mut pull).await.is_none());
        let error = pull.finish().await.unwrap_err();
        assert!(matches!(error, Error::DeadLetter(_)), "{error}");
    });
    assert_eq!((marks(&store, 0), store.head(0)), (vec![], None));
    assert_eq!(Operator::new(&broker).committed(0), None);
    let (effects, _) = consume(burying(&broker), store, 2);
    assert_eq!(effects.len(), 2);
}
