//! Whose turn it is among many records that wait for each other.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use idempotent_consumer::{DeadLetter, Delivery, HandlerError, Ordering, RetryPolicy, key};

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
fn a_record_that_waited_for_its_copy_keeps_its_place_among_those_of_its_record_key() {
    let (broker, store) = (broker(1), Scripted::new());
    broker.create_topic("letters", 1).unwrap();
    // Identity: the value. Record key: the customer.
    produce(&broker, 0, &[("c", "1"), ("c", "1"), ("c", "2")]);
    let seen: Arc<Mutex<Vec<i64>>> = Arc::default();
    let order = Arc::clone(&seen);
    let builder = many(builder(&broker), Ordering::Key)
        .key(key::value())
        .retry(RetryPolicy::never())
        .dead_letter(DeadLetter::to_topic("letters"));
    let running = Running::run(
        builder,
        store,
        async move |delivery: &Delivery<'_>, _: &mut _| {
            order.lock().unwrap().push(delivery.offset());
            if delivery.offset() == 0 {
                return Err(HandlerError::reject("not this one"));
            }
            Ok(())
        },
    );
    running.wait(2);
    running.stop();
    assert_eq!(*seen.lock().unwrap(), [0, 1, 2]);
}

#[test]
fn records_that_wait_in_the_order_of_their_record_keys_never_wait_for_each_other() {
    let (broker, store) = (broker(1), Scripted::new());
    broker.create_topic("letters", 1).unwrap();
    let (read, gate) = (Arc::new(AtomicUsize::new(0)), Gate::default());
    let (counted, freeing, held) = (Arc::clone(&read), store.clone(), gate.clone());
    let free = Gate::default();
    let freed = free.clone();
    // The identity is the value. The copy at offset 4 is looked at just when "x" has become free.
    let telling = key::with("telling", move |record| {
        if counted.fetch_add(1, SeqCst) == 4 {
            freeing.block(false);
            wait_for("the letter's mark", || freeing.marks() == 1);
            std::thread::sleep(Duration::from_millis(100));
            freed.open();
        }
        Ok(record.value().map(<[u8]>::to_vec))
    });
    let builder = many(builder(&broker), Ordering::Key)
        .key(telling)
        .retry(RetryPolicy::never())
        .dead_letter(DeadLetter::to_topic("letters"));
    produce(
        &broker,
        0,
        &[("k0", "x"), ("k1", "x"), ("k1", "y"), ("k2", "y")],
    );
    let running = Running::run(
        builder,
        store.clone(),
        async move |delivery: &Delivery<'_>, _: &mut _| {
            if delivery.offset() > 0 {
                return Ok(());
            }
            pass(&held).await;
            Err(HandlerError::reject("not this one"))
        },
    );
    running.wait_for("all to be read", || read.load(SeqCst) == 4);
    std::thread::sleep(Duration::from_millis(100));
    store.block(true);
    gate.open();
    running.wait_for("the letter's commit", || store.waiting() > 0);
    produce(&broker, 0, &[("k2", "x")]);
    let end = Instant::now() + DEADLINE;
    while Instant::now() < end && running.effects.len() < 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let effects = running.effects.list();
    assert_eq!(
        effects.len(),
        2,
        "{effects:?}, gaps {:?}, marks {}, head {:?}, looked at {}",
        store.gaps_of(0),
        store.marks(),
        store.head(0),
        free.is_open()
    );
    running.stop();
}

#[test]
fn copies_that_keep_coming_do_not_keep_a_handler_from_going_on() {
    let (broker, store) = (broker(1), Scripted::new());
    let passed = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&passed);
    let telling = move || {
        let counted = Arc::clone(&counted);
        key::with("telling", move |record| {
            counted.fetch_add(1, SeqCst);
            Ok(record.key().map(<[u8]>::to_vec))
        })
    };
    produce(&broker, 0, &[("dup", "dup")]);
    let builder = || many(builder(&broker).key(telling()), Ordering::Unordered);
    consume(builder(), store.clone(), 1);
    let mut records = vec![("slow", "s")];
    records.resize(30_000, ("dup", "dup"));
    produce(&broker, 0, &records);
    // The most copies between two polls, and between how many polls there were any.
    let steps: Arc<Mutex<(usize, usize)>> = Arc::default();
    let (noted, read) = (Arc::clone(&steps), Arc::clone(&passed));
    let running = Running::run(
        builder(),
        store,
        async move |_: &Delivery<'_>, _: &mut _| {
            let mut before = read.load(SeqCst);
            while before < 30_000 {
                // Ready again at once: a timer may be late where the machine is busy.
                tokio::task::yield_now().await;
                let now = read.load(SeqCst);
                if now > before {
                    let (most, count) = &mut *noted.lock().unwrap();
                    (*most, *count) = ((*most).max(now - before), *count + 1);
                }
                before = now;
            }
            Ok(())
        },
    );
    running.wait(1);
    running.stop();
    let (most, count) = *steps.lock().unwrap();
    assert!(
        most < 5_000 && count > 4,
        "up to {most} copies were passed over between two polls of a handler, in {count} steps"
    );
}
