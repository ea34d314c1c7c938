//! Several records of a partition at once: orders, bounds, copies.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idempotent_consumer::{Builder, Delivery, HandlerResult, Ordering, Report, RetryPolicy};
use tokio_util::sync::CancellationToken;

use crate::scripted::Scripted;
use crate::support::*;

/// Doors by record key: a record waits at its own, where there is one.
#[derive(Clone, Default)]
pub(crate) struct Doors(Arc<Mutex<HashMap<String, CancellationToken>>>);

impl Doors {
    pub(crate) fn shut(names: &[&str]) -> Self {
        let doors = names
            .iter()
            .map(|name| ((*name).to_owned(), CancellationToken::new()));
        Self(Arc::new(Mutex::new(doors.collect())))
    }

    pub(crate) fn open(&self, name: &str) {
        self.0.lock().unwrap()[name].cancel();
    }

    async fn pass(&self, delivery: &Delivery<'_>) {
        let name = String::from_utf8_lossy(delivery.value().unwrap_or_default()).into_owned();
        let door = self.0.lock().unwrap().get(&name).cloned();
        if let Some(door) = door {
            door.cancelled().await;
        }
    }
}

/// How many are in their handlers, and how many were at most.
#[derive(Default)]
pub(crate) struct Inside {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Inside {
    fn enter(&self) {
        self.most
            .fetch_max(self.now.fetch_add(1, SeqCst) + 1, SeqCst);
    }

    fn leave(&self) {
        self.now.fetch_sub(1, SeqCst);
    }
}

/// A consumer whose handlers wait at doors and then answer as `judge` says.
pub(crate) fn start(
    builder: Builder,
    store: Scripted,
    doors: Doors,
    inside: Arc<Inside>,
    judge: impl Fn(&Delivery<'_>) -> HandlerResult + Send + Sync + 'static,
) -> Running {
    Running::run(
        builder,
        store,
        async move |delivery: &Delivery<'_>, _: &mut _| {
            inside.enter();
            doors.pass(delivery).await;
            inside.leave();
            judge(delivery)
        },
    )
}

pub(crate) fn many(builder: Builder, ordering: Ordering) -> Builder {
    builder.ordering(ordering).max_concurrency(100)
}

pub(crate) fn gaps(store: &Scripted) -> Vec<(i64, i64)> {
    store.gaps_of(0)
}

// C002
#[test]
fn records_of_one_key_come_in_their_order_and_others_do_not_wait_for_them() {
    let (broker, store) = (broker(1), Scripted::new());
    let records: Vec<_> = (0..300)
        .map(|n| (format!("customer-{}", n % 10), format!("{n}")))
        .collect();
    let records: Vec<_> = records
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    produce(&broker, 0, &records);
    let doors = Doors::shut(&["3"]);
    let builder = many(builder(&broker), Ordering::Key).key(idempotent_consumer::key::value());
    let running = start(builder, store, doors.clone(), Arc::default(), |_| Ok(()));
    // All but the thirty of one customer.
    running.wait(270);
    doors.open("3");
    running.wait(300);
    let mut by_key: HashMap<String, Vec<u32>> = HashMap::new();
    for effect in running.effects.list() {
        let (key, value) = effect.rsplit_once('=').unwrap();
        let key = key.rsplit_once(':').unwrap().1.to_owned();
        by_key.entry(key).or_default().push(value.parse().unwrap());
    }
    assert_eq!(by_key.len(), 10);
    for (key, values) in by_key {
        assert!(values.is_sorted(), "{key}: {values:?}");
    }
    assert_eq!(running.stop().counts.new, 300);
}

#[test]
fn fifty_copies_in_one_fetch_have_one_effect_and_hold_nobody_up() {
    let (broker, store) = (broker(1), Scripted::new());
    let mut records = vec![("order-1", "a"); 51];
    records.push(("order-2", "b"));
    produce(&broker, 0, &records);
    let doors = Doors::shut(&["a"]);
    let builder = many(builder(&broker), Ordering::Unordered);
    let running = start(
        builder,
        store.clone(),
        doors.clone(),
        Arc::default(),
        |_| Ok(()),
    );
    running.wait(1);
    assert_eq!(running.effects.list(), ["0:51:order-2=b"]);
    doors.open("a");
    running.wait_for("all of them", || {
        store.head(0) == Some(52) && gaps(&store).is_empty()
    });
    let report = running.stop();
    assert_eq!((report.counts.new, report.counts.duplicate), (2, 50));
}

#[test]
fn where_the_first_of_several_copies_ends_without_effect_another_takes_its_place() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(
        &broker,
        0,
        &[("order-1", "a"), ("order-1", "a"), ("order-1", "a")],
    );
    let builder = many(builder(&broker), Ordering::Unordered);
    let runtime = runtime();
    runtime.block_on(async {
        let mut pull = builder.build(store.clone()).unwrap().pull();
        let first = pull.next().await.unwrap();
        assert_eq!(
            (first.delivery().unwrap().offset(), first.awaits_answer()),
            (0, true)
        );
        // Handed out again, or one of its copies is in its stead: one of them alone.
        first.release();
        let second = pull.next().await.unwrap();
        assert!(second.awaits_answer());
        second.done(idempotent_consumer::Effects::default());
        for _ in 0..2 {
            let copy = pull.next().await.unwrap();
            assert!(!copy.awaits_answer());
        }
        let report = pull.finish().await.unwrap();
        assert_eq!((report.counts.new, report.counts.duplicate), (1, 2));
    });
    assert_eq!(store.head(0), Some(3));
}

#[test]
fn never_more_are_handled_at_once_than_may_be_over_all_partitions() {
    let (broker, store) = (broker(4), Scripted::new());
    for partition in 0..4 {
        let from = u32::try_from(partition).unwrap() * 100;
        produce_numbered(&broker, partition, from..from + 100);
    }
    let inside = Arc::new(Inside::default());
    let builder = builder(&broker)
        .ordering(Ordering::Unordered)
        .max_concurrency(6);
    let (seen, full) = (Arc::clone(&inside), Gate::default());
    let opener = full.clone();
    let running = Running::run(builder, store, async move |_: &Delivery<'_>, _: &mut _| {
        seen.enter();
        while !opener.is_open() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::task::yield_now().await;
        seen.leave();
        Ok(())
    });
    running.wait_for("six at once", || inside.now.load(SeqCst) == 6);
    full.open();
    running.wait(400);
    running.stop();
    assert_eq!(inside.most.load(SeqCst), 6);
}

#[test]
fn a_record_that_is_tried_again_keeps_no_other_from_being_handled() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..50);
    let mend = Gate::default();
    let mended = mend.clone();
    let patient =
        RetryPolicy::exponential(u32::MAX, Duration::from_millis(5), Duration::from_millis(5));
    let builder = builder(&broker)
        .retry(patient)
        .ordering(Ordering::Unordered)
        // Its pauses leave the only place to others.
        .max_concurrency(1);
    let running = Running::start(builder, store, move |delivery| {
        if delivery.offset() == 0 && !mended.is_open() {
            return Err("not yet".into());
        }
        Ok(())
    });
    running.wait(49);
    mend.open();
    running.wait(50);
    let report = running.stop();
    assert_eq!(report.counts.new, 50);
    assert!(report.counts.retried > 0);
}

// C029
#[test]
fn claims_of_one_partition_are_answered_in_any_order() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..5);
    let runtime = runtime();
    let report: Report = runtime.block_on(async {
        let consumer = many(builder(&broker), Ordering::Unordered).build(store.clone());
        let mut pull = consumer.unwrap().pull();
        let mut claims = Vec::new();
        while claims.len() < 5 {
            claims.push(pull.next().await.unwrap());
        }
        while let Some(claim) = claims.pop() {
            claim.done(idempotent_consumer::Effects::default());
        }
        wait_for("the marks", || store.marks() == 5);
        pull.finish().await.unwrap()
    });
    assert_eq!((report.counts.new, store.head(0)), (5, Some(5)));
}

// C037
