//! Partitions at the same time, and one key in two of them.

use std::time::Duration;

use idempotent_consumer::Error;

use crate::scripted::Scripted;
use crate::support::*;

#[test]
fn two_partitions_are_worked_at_the_same_time() {
    let (broker, store) = (broker(2), Scripted::new());
    produce(&broker, 0, &[("order-1", "a")]);
    produce(&broker, 1, &[("order-2", "b")]);
    // Neither comes out of its handler before the other is in its own; which of them notes its
    // effect first is then nobody's promise.
    let inside = [Gate::default(), Gate::default()];
    let running = Running::start(builder(&broker), store, move |delivery| {
        let own = usize::try_from(delivery.partition()).unwrap();
        inside[own].open();
        inside[1 - own].pass();
        Ok(())
    });
    running.wait(2);
    let effects = running.effects.sorted();
    assert_eq!(effects, ["0:0:order-1=a", "1:0:order-2=b"]);
    running.stop();
}

#[test]
fn one_partition_is_worked_in_its_order() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..3_000);
    let (effects, _) = consume(builder(&broker), store, 3_000);
    let expected = (0..3_000).map(|n| format!("0:{n}:order-{n}=order-{n}"));
    assert!(effects.into_iter().eq(expected));
}

#[test]
fn handlers_that_wait_for_timers_do_not_hold_each_other_up() {
    let (broker, store) = (broker(8), Scripted::new());
    for partition in 0..8 {
        produce(&broker, partition, &[(&format!("order-{partition}"), "a")]);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let (token, handled) = (stop.clone(), Effects::default());
    let (noted, consumer) = (handled.clone(), builder(&broker).build(store).unwrap());
    let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(8));
    let report = runtime.block_on(async {
        // All eight are in their handlers at once, or none comes out.
        let run = consumer.run(
            async move |delivery, _| {
                tokio::time::sleep(Duration::from_millis(5)).await;
                barrier.wait().await;
                noted.add(effect(delivery));
                if noted.len() == 8 {
                    stop.cancel();
                }
                Ok(())
            },
            token,
        );
        tokio::time::timeout(DEADLINE, run).await
    });
    assert_eq!(report.unwrap().unwrap().counts.new, 8);
}

#[test]
fn a_copy_in_another_partition_waits_for_the_first_in_flight() {
    let (broker, store) = (broker(2), Scripted::new());
    produce(&broker, 0, &[("order-1", "a")]);
    let (started, finish) = (Gate::default(), Gate::default());
    let (begun, end) = (started.clone(), finish.clone());
    let running = Running::start(builder(&broker), store, move |delivery| {
        if delivery.key() == Some(b"order-1") {
            begun.open();
            end.pass();
        }
        Ok(())
    });
    started.pass();
    // Behind the copy another record, to show that it is waited for and not passed.
    produce(
        &broker,
        1,
        &[("order-0", "z"), ("order-1", "a"), ("order-2", "b")],
    );
    running.wait(1);
    assert_eq!(running.effects.list(), ["1:0:order-0=z"]);
    finish.open();
    running.wait(3);
    let effects = running.effects.list();
    let report = running.stop();
    assert_eq!(effects[1..], ["0:0:order-1=a", "1:2:order-2=b"]);
    assert_eq!((report.counts.new, report.counts.duplicate), (3, 1));
}

#[test]
fn where_the_first_in_flight_fails_for_good_its_copy_takes_effect_once() {
    let (broker, store) = (broker(2), Scripted::new());
    produce(&broker, 0, &[("order-1", "a")]);
    let (started, finish) = (Gate::default(), Gate::default());
    let (begun, end) = (started.clone(), finish.clone());
    let running = Running::start(builder(&broker), store.clone(), move |delivery| {
        if delivery.partition() == 0 {
            begun.open();
            end.pass();
            return Err("only here".into());
        }
        Ok(())
    });
    started.pass();
    produce(&broker, 1, &[("order-0", "z"), ("order-1", "a")]);
    running.wait(1);
    finish.open();
    let effects = running.effects.clone();
    let error = running.error();
    assert!(matches!(error, Error::Handler { .. }), "{error}");
    // The end may come before the copy has its turn; then it has it now.
    let second = Running::start(builder(&broker), store.clone(), |_| Ok(()));
    second.wait_for("both partitions", || {
        (store.head(0), store.head(1)) == (Some(1), Some(2))
    });
    let both: Vec<_> = effects
        .list()
        .into_iter()
        .chain(second.effects.list())
        .collect();
    second.stop();
    assert_eq!(
        both.iter()
            .filter(|effect| effect.contains("order-1"))
            .count(),
        1,
        "{both:?}"
    );
}

#[test]
fn copies_that_cross_in_two_partitions_do_not_wait_for_each_other_for_ever() {
    let (broker, store) = (broker(2), Scripted::new());
    let names: Vec<_> = (0..400).map(|n| format!("order-{n}")).collect();
    let ahead: Vec<_> = names.iter().map(|n| (n.as_str(), "v")).collect();
    let back: Vec<_> = ahead.iter().rev().copied().collect();
    produce(&broker, 0, &ahead);
    produce(&broker, 1, &back);
    let running = Running::start(builder(&broker), store.clone(), |_| Ok(()));
    running.wait_for("both partitions", || {
        (store.head(0), store.head(1)) == (Some(400), Some(400))
    });
    let report = running.stop();
    assert_eq!((report.counts.new, report.counts.duplicate), (400, 400));
}
