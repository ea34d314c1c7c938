//! What a member makes of records that another one had: letters, gaps, doubt.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idempotent_consumer::testkit::Produced;
use idempotent_consumer::{DeadLetter, Delivery, HandlerError, Ordering, Restore, RetryPolicy};

use crate::concurrent::many;
use crate::scripted::Scripted;
use crate::support::*;

#[test]
fn a_letter_that_is_sent_again_is_tried_by_a_member_that_restored_its_record() {
    let (broker, store) = (broker(1), Scripted::new());
    broker.create_topic("letters", 1).unwrap();
    let builder = || {
        builder(&broker)
            .retry(RetryPolicy::never())
            .dead_letter(DeadLetter::to_topic("letters"))
            .replay_from([TOPIC])
    };
    produce(&broker, 0, &[("x", "v")]);
    let one = Running::start(builder(), store.clone(), |_| {
        Err(HandlerError::reject("down"))
    });
    one.wait_for("the letter", || store.head(0) == Some(1));
    assert_eq!(one.stop().counts.dead_lettered, 1);
    // Another member takes the partition over; the operator sends the letter to the topic again.
    let letter = Produced {
        key: Some(b"x"),
        value: Some(b"v"),
        headers: &[
            ("kafka_dlt-original-topic", Some(TOPIC.as_bytes())),
            ("kafka_dlt-original-partition", Some(&[0; 4])),
            ("kafka_dlt-original-offset", Some(&[0; 8])),
        ],
        ..Produced::default()
    };
    broker.produce(TOPIC, &[letter]).unwrap();
    produce(&broker, 0, &[("x", "v"), ("last", "l")]);
    let (effects, report) = consume(builder(), Scripted::new(), 2);
    assert_eq!(effects, ["0:1:x=v", "0:3:last=l"]);
    // Whether it was given up or done by then is not known here.
    assert_eq!((report.counts.in_doubt, report.counts.duplicate), (2, 1));
}

#[test]
fn what_another_member_handled_is_recognised_although_a_record_of_its_key_was_a_dead_letter_here() {
    let (broker, ours) = (broker(2), Scripted::new());
    broker.create_topic("letters", 1).unwrap();
    let builder = || {
        builder(&broker)
            .retry(RetryPolicy::never())
            .dead_letter(DeadLetter::to_topic("letters"))
    };
    produce(&broker, 0, &[("x", "v")]);
    let one = Running::start(builder(), ours.clone(), |_| {
        Err(HandlerError::reject("down"))
    });
    one.wait_for("the letter", || ours.head(0) == Some(1));
    one.stop();
    // Another member handles a copy in the other partition.
    produce(&broker, 1, &[("x", "v")]);
    let (theirs, _) = consume(builder().restore(Restore::Ignore), Scripted::new(), 1);
    assert_eq!(theirs, ["1:0:x=v"]);
    // Back here: it is restored, and a third copy comes.
    produce(&broker, 1, &[("x", "v"), ("last", "l")]);
    let (effects, report) = consume(builder(), ours, 1);
    assert_eq!(effects, ["1:2:last=l"], "{:?}", report.counts);
}

#[test]
fn the_doubt_of_a_crash_outlives_the_records_that_were_forgotten_before_it() {
    use idempotent_consumer::store::Forget;
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    let path = dir.path().join("store");
    produce_numbered(&broker, 0, 0..1_100);
    consume(builder(&broker), sled(&path), 1_100);
    // An effect without a mark: the handler never answers, and nobody waits for it.
    produce_numbered(&broker, 0, 1_100..1_101);
    let inside = Arc::new(AtomicUsize::new(0));
    let entered = Arc::clone(&inside);
    let running = Running::run(
        builder(&broker).retry(RetryPolicy::never()),
        sled(&path),
        async move |_: &Delivery<'_>, _: &mut _| {
            entered.fetch_add(1, SeqCst);
            panic!("after the effect");
        },
    );
    let _ = running.end();
    assert_eq!(inside.load(SeqCst), 1);
    let all = idempotent_consumer::TopicPartition::new(TOPIC, 0);
    sled(&path)
        .forget(&Forget::offsets(&all, 0..1_100))
        .unwrap();
    let doubted = Arc::new(Mutex::new(None));
    let told = Arc::clone(&doubted);
    let running = Running::start(builder(&broker), sled(&path), move |delivery| {
        if delivery.offset() == 1_100 {
            *told.lock().unwrap() = Some(delivery.in_doubt());
        }
        Ok(())
    });
    running.wait(1_101);
    running.stop();
    assert_eq!(*doubted.lock().unwrap(), Some(true));
}

#[test]
fn where_another_member_worked_in_our_gaps_what_lies_behind_our_head_is_in_doubt() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..10);
    let stubborn = RetryPolicy::exponential(
        1_000_000,
        Duration::from_millis(20),
        Duration::from_millis(20),
    );
    let builder = || many(builder(&broker), Ordering::Unordered).retry(stubborn.clone());
    let running = Running::start(builder(), store.clone(), |delivery| {
        match delivery.offset() {
            2 => Err(HandlerError::Retry("not yet".into())),
            _ => Ok(()),
        }
    });
    running.wait_for("the marks", || store.marks() == 9);
    running.stop();
    assert_eq!((store.head(0), store.gaps_of(0)), (Some(10), vec![(2, 3)]));
    // Another member, with a store of its own, comes as far as 5 by what the group knows.
    let theirs = crate::support::builder(&broker).retry(RetryPolicy::never());
    let other = Running::start(theirs, Scripted::new(), |delivery| {
        match delivery.offset() {
            5 => Err(HandlerError::reject("dies here")),
            _ => Ok(()),
        }
    });
    other.error();
    assert_eq!(Operator::new(&broker).committed(0), Some(5));
    produce_numbered(&broker, 0, 10..12);
    let (mut effects, report) = consume(builder(), store, 2);
    effects.sort();
    assert_eq!(
        effects,
        ["0:10:order-10=order-10", "0:11:order-11=order-11"]
    );
    assert_eq!(report.counts.in_doubt, 2);
}

#[test]
fn a_record_that_a_crash_left_in_doubt_is_so_until_it_is_done() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..1_100);
    let pause = Duration::from_millis(20);
    let stubborn = RetryPolicy::exponential(1_000_000, pause, pause);
    let builder = || many(builder(&broker), Ordering::Unordered).retry(stubborn.clone());
    // An effect whose mark never came.
    store.fail_after(0);
    Running::start(builder(), store.clone(), |_| Ok(())).error();
    store.mend();
    assert_eq!(store.head(0), None);
    // It stays undone, and more than a thousand others are done.
    let running = Running::start(builder(), store.clone(), |delivery| {
        match delivery.offset() {
            0 => Err(HandlerError::Retry("not yet".into())),
            _ => Ok(()),
        }
    });
    running.wait_for("the marks", || store.marks() == 1_099);
    running.stop();
    assert_eq!(store.gaps_of(0), [(0, 1)]);
    let (effects, report) = consume(builder(), store, 1);
    assert_eq!(effects, ["0:0:order-0=order-0"]);
    assert_eq!(report.counts.in_doubt, 1);
}
