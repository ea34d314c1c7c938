//! Stops while many records are under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use idempotent_consumer::{Delivery, Ordering, key};

use crate::concurrent::many;
use crate::scripted::Scripted;
use crate::support::*;

/// Waits in a future until the gate is open.
async fn pass(gate: &Gate) {
    while !gate.is_open() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn a_stop_with_a_copy_parked_behind_its_first_does_not_let_a_third_one_be_handled() {
    let (broker, store) = (broker(2), Scripted::new());
    let (gate, inside) = (Gate::default(), Arc::new(AtomicUsize::new(0)));
    let (held, entered) = (gate.clone(), Arc::clone(&inside));
    produce(&broker, 0, &[("x", "v")]);
    let read = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&read);
    let telling = key::with("telling", move |record| {
        counted.fetch_add(1, SeqCst);
        Ok(record.key().map(<[u8]>::to_vec))
    });
    let builder = many(builder(&broker).key(telling), Ordering::Unordered);
    let running = Running::run(
        builder,
        store,
        async move |delivery: &Delivery<'_>, _: &mut _| {
            if delivery.value() == Some(b"v") {
                entered.fetch_add(1, SeqCst);
                pass(&held).await;
            }
            Ok(())
        },
    );
    running.wait_for("the first", || inside.load(SeqCst) == 1);
    // A copy behind the first, and another in a partition where something behind it is done.
    produce(&broker, 0, &[("x", "v")]);
    produce(&broker, 1, &[("x", "v"), ("other", "o")]);
    running.wait(1);
    running.wait_for("both copies to be read", || read.load(SeqCst) == 4);
    running.stop.cancel();
    let end = Instant::now() + Duration::from_millis(1500);
    while Instant::now() < end && inside.load(SeqCst) < 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let at_once = inside.load(SeqCst);
    gate.open();
    let effects = running.effects.clone();
    let _ = running.end();
    assert_eq!(
        (at_once, effects.list().len()),
        (1, 2),
        "{:?}",
        effects.list()
    );
}

#[test]
fn a_stop_begins_nothing_that_still_waits_for_its_turn() {
    let (broker, store) = (broker(2), Scripted::new());
    produce_numbered(&broker, 0, 0..200);
    let (gate, inside) = (Gate::default(), Arc::new(AtomicUsize::new(0)));
    let (held, entered) = (gate.clone(), Arc::clone(&inside));
    let builder = builder(&broker)
        .ordering(Ordering::Unordered)
        .max_concurrency(1);
    let running = Running::run(
        builder,
        store.clone(),
        async move |_: &Delivery<'_>, _: &mut _| {
            entered.fetch_add(1, SeqCst);
            held.passed().await;
            // All of them would take two seconds.
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok(())
        },
    );
    running.wait_for("the first", || inside.load(SeqCst) == 1);
    running.wait_for("the other partition", || store.calls().len() == 2);
    running.stop.cancel();
    // Both are told, one after the other, and then waited for: this is the one without records.
    running.wait_for("the end of the other partition", || store.calls().len() > 2);
    gate.open();
    let effects = running.effects.clone();
    running.end().unwrap();
    assert!(
        effects.len() < 100,
        "{} were handled after the stop",
        effects.len()
    );
}

#[test]
fn a_panic_of_a_key_function_leaves_what_was_under_way_in_doubt() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("x", "v")]);
    let inside = Arc::new(AtomicUsize::new(0));
    let entered = Arc::clone(&inside);
    let telling = key::with("telling", |record| {
        assert!(record.key() != Some(b"bad"), "a bug of the user's");
        Ok(record.key().map(<[u8]>::to_vec))
    });
    let running = Running::run(
        many(builder(&broker).key(telling), Ordering::Unordered),
        store.clone(),
        async move |_: &Delivery<'_>, _: &mut _| {
            // The effect happens here, and then an answer is waited for.
            entered.fetch_add(1, SeqCst);
            std::future::pending::<()>().await;
            Ok(())
        },
    );
    running.wait_for("the effect", || inside.load(SeqCst) == 1);
    produce(&broker, 0, &[("bad", "b")]);
    let error = running.error();
    let mended = key::with("telling", |record| Ok(record.key().map(<[u8]>::to_vec)));
    let (_, report) = consume(
        many(builder(&broker).key(mended), Ordering::Unordered),
        store,
        2,
    );
    // Both came before the lease was taken again.
    assert_eq!(report.counts.in_doubt, 2, "{error}");
}

#[test]
fn a_unit_stays_within_its_bound_while_a_stop_waits_for_a_slow_device() {
    use idempotent_consumer::store::{PartitionId, Place, Store as _};
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..12);
    let (gate, inside) = (Gate::default(), Arc::new(AtomicUsize::new(0)));
    let (held, entered) = (gate.clone(), Arc::clone(&inside));
    let running = Running::run(
        many(builder(&broker), Ordering::Unordered),
        store.clone(),
        async move |_: &Delivery<'_>, effects: &mut idempotent_consumer::Effects| {
            entered.fetch_add(1, SeqCst);
            pass(&held).await;
            effects.record_bytes(vec![1; 60_000])?;
            Ok(())
        },
    );
    running.wait_for("all", || inside.load(SeqCst) == 12);
    store.block(true);
    running.stop.cancel();
    gate.open();
    // The others' handlers have ended too by now, or will.
    running.wait(1);
    running.wait_for("a commit that takes its time", || store.waiting() > 0);
    store.block(false);
    running.end().unwrap();
    let (mut place, mut largest) = (Place::default(), 0);
    while let Some((at, unit)) = store.unit_behind(PartitionId(0), place).unwrap() {
        let results = unit
            .entries
            .iter()
            .filter_map(|entry| entry.result.as_ref());
        largest = largest.max(results.map(|result| result.len()).sum());
        place = at;
    }
    assert!(
        largest <= 116 << 10,
        "a unit has {largest} bytes of results; sled's bound is 118784"
    );
}
