//! The pull form.

use std::time::Duration;

use idempotent_consumer::{Claimed, Decision, Effects as Recorded, Error, Pull};
use tokio::runtime::Runtime;

use crate::scripted::Scripted;
use crate::support::*;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

async fn next(pull: &mut Pull) -> Claimed {
    let next = tokio::time::timeout(DEADLINE, pull.next()).await;
    next.expect("a claim in time").expect("a claim")
}

fn offset(claimed: &Claimed) -> i64 {
    claimed.delivery().unwrap().offset()
}

// C025
#[test]
fn a_claim_that_is_done_is_marked_and_its_copies_carry_its_result() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(
        &broker,
        0,
        &[("order-1", "a"), ("order-1", "a"), ("order-2", "b")],
    );
    runtime().block_on(async {
        let mut pull = builder(&broker).build(store.clone()).unwrap().pull();
        let first = next(&mut pull).await;
        assert_eq!(
            (first.decision(), first.awaits_answer()),
            (Decision::New, true)
        );
        assert_eq!(first.result(), None);
        let delivery = first.delivery().unwrap();
        assert_eq!(
            (delivery.key(), delivery.attempt()),
            (Some(&b"order-1"[..]), 1)
        );
        let mut recorded = Recorded::default();
        recorded.record("receipt").unwrap();
        first.done(recorded);
        let copy = next(&mut pull).await;
        assert_eq!(
            (copy.decision(), copy.awaits_answer()),
            (Decision::Duplicate, false)
        );
        assert_eq!(
            (offset(&copy), copy.result()),
            (1, Some(&b"\"receipt\""[..]))
        );
        // Whatever is answered to a copy changes nothing.
        copy.failed("ignored");
        let third = next(&mut pull).await;
        assert_eq!(offset(&third), 2);
        third.done(Recorded::default());
        let report = pull.finish().await.unwrap();
        assert_eq!((report.counts.new, report.counts.duplicate), (2, 1));
    });
    assert_eq!(store.head(0), Some(3));
    assert_eq!(Operator::new(&broker).committed(0), Some(3));
}

#[test]
fn a_claim_that_is_released_or_dropped_comes_again_and_is_not_marked() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a"), ("order-2", "b")]);
    runtime().block_on(async {
        let mut pull = builder(&broker).build(store.clone()).unwrap().pull();
        next(&mut pull).await.release();
        drop(next(&mut pull).await);
        let again = next(&mut pull).await;
        let delivery = again.delivery().unwrap();
        assert_eq!(
            (delivery.offset(), delivery.attempt()),
            (0, 1),
            "no failure"
        );
        assert_eq!(store.head(0), None);
        drop(again);
        // Dropped at the end: it is left for the next start.
        let report = pull.finish().await.unwrap();
        assert_eq!((report.counts.new, report.counts.retried), (0, 0));
    });
    assert_eq!(Operator::new(&broker).committed(0), None);
    let (effects, _) = consume(builder(&broker), store, 2);
    assert_eq!(effects, ["0:0:order-1=a", "0:1:order-2=b"]);
}

#[test]
fn a_claim_that_failed_comes_again_until_attempts_are_used_up() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a"), ("order-2", "b")]);
    runtime().block_on(async {
        let mut pull = builder(&broker).build(store.clone()).unwrap().pull();
        next(&mut pull).await.failed("first");
        let second = next(&mut pull).await;
        assert_eq!(second.delivery().unwrap().attempt(), 2);
        second.failed("second");
        let end = tokio::time::timeout(DEADLINE, pull.next()).await;
        assert!(end.expect("an end in time").is_none());
        let error = pull.finish().await.unwrap_err();
        assert!(
            matches!(error, Error::Handler { attempts: 2, .. }),
            "{error}"
        );
        assert!(error.to_string().contains("orders[0]@0"), "{error}");
    });
    assert_eq!(store.head(0), None);
}

#[test]
fn nothing_behind_an_open_claim_of_its_partition_comes_and_other_partitions_go_on() {
    let (broker, store) = (broker(2), Scripted::new());
    produce_numbered(&broker, 0, 0..2);
    produce_numbered(&broker, 1, 10..12);
    runtime().block_on(async {
        let mut pull = builder(&broker).build(store.clone()).unwrap().pull();
        let held = next(&mut pull).await;
        let blocked = held.delivery().unwrap().partition();
        for expected in 0..2 {
            let other = next(&mut pull).await;
            assert_ne!(other.delivery().unwrap().partition(), blocked);
            assert_eq!(offset(&other), expected);
            other.done(Recorded::default());
        }
        held.done(Recorded::default());
        let last = next(&mut pull).await;
        assert_eq!(offset(&last), 1);
        last.done(Recorded::default());
        assert_eq!(pull.finish().await.unwrap().counts.new, 4);
    });
}

#[test]
fn an_end_while_nobody_pulls_does_not_hang() {
    let (broker, store) = (broker(4), Scripted::new());
    for partition in 0..4 {
        produce(&broker, partition, &[(&format!("order-{partition}"), "a")]);
    }
    runtime().block_on(async {
        // Far longer than this test may wait.
        let patient = builder(&broker).drain_limit(Duration::from_secs(600));
        let pull = patient.build(store.clone()).unwrap().pull();
        wait_for("the partitions", || store.calls().len() == 4);
        let end = tokio::time::timeout(DEADLINE, pull.finish()).await;
        assert_eq!(end.expect("an end in time").unwrap().counts.new, 0);
    });
    assert_eq!(consume(builder(&broker), store, 4).0.len(), 4);
}

#[test]
fn a_claim_answered_after_the_drain_limit_leaves_no_offset() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a")]);
    runtime().block_on(async {
        let short = builder(&broker).drain_limit(Duration::from_millis(50));
        let mut pull = short.build(store.clone()).unwrap().pull();
        let held = next(&mut pull).await;
        let error = pull.finish().await.unwrap_err();
        assert!(matches!(error, Error::DrainTimeout { .. }), "{error}");
        held.done(Recorded::default());
    });
    wait_for("the late lane", || {
        store.calls().iter().any(|call| call == "release 0")
    });
    assert_eq!(Operator::new(&broker).committed(0), None);
}

#[test]
fn dropping_the_puller_stops_the_consumer() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a"), ("order-2", "b")]);
    let runtime = runtime();
    runtime.block_on(async {
        let mut pull = builder(&broker).build(store.clone()).unwrap().pull();
        next(&mut pull).await.done(Recorded::default());
    });
    wait_for("the release", || {
        store.calls().last().is_some_and(|call| call == "release 0")
    });
    assert_eq!(store.head(0), Some(1));
    let (effects, _) = consume(builder(&broker), store, 1);
    assert_eq!(effects, ["0:1:order-2=b"]);
}

#[test]
fn a_partition_is_given_up_at_once_while_nobody_pulls() {
    let broker = broker(2);
    produce(&broker, 0, &[("order-1", "a")]);
    produce(&broker, 1, &[("order-2", "b")]);
    let (a, b) = (Scripted::new(), Scripted::new());
    let runtime = runtime();
    let pull = runtime.block_on(async {
        // Far longer than this test may wait.
        let patient = builder(&broker).drain_limit(Duration::from_secs(600));
        patient.build(a.clone()).unwrap().pull()
    });
    wait_for("both partitions", || a.calls().len() == 2);
    let other = Running::start(builder(&broker), b, |_| Ok(()));
    other.wait_for("the revocation", || {
        let released = a.calls().into_iter().filter(|c| c.starts_with("release"));
        released.count() >= 2
    });
    other.wait(1);
    other.stop();
    runtime.block_on(async {
        let mut pull = pull;
        // What was taken back is not handed out; what comes now is.
        let claimed = next(&mut pull).await;
        assert!(claimed.awaits_answer());
        claimed.done(Recorded::default());
        wait_for("the mark", || a.marks() > 0);
        pull.finish().await.unwrap();
    });
}
