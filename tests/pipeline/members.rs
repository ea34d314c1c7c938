//! Two members of one group, each with a store of its own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use idempotent_consumer::testkit::EmbeddedBroker;
use idempotent_consumer::{Delivery, HandlerResult, Ordering, RetryPolicy, TopicPartition};

use crate::scripted::Scripted;
use crate::support::*;

/// Each order's number of effects.
fn repeated(effects: &[Effects]) -> Vec<String> {
    let mut all: Vec<_> = effects.iter().flat_map(Effects::list).collect();
    all.sort();
    let twice = all.windows(2).filter(|pair| pair[0] == pair[1]);
    twice.map(|pair| pair[0].clone()).collect()
}

fn leases(store: &Scripted) -> usize {
    let calls = store.calls();
    calls
        .iter()
        .filter(|call| call.starts_with("lease"))
        .count()
}

/// Lets two members come and go while records flow; gives all effects, of 4 × 700 records.
fn come_and_go(broker: &EmbeddedBroker, a: &Scripted, b: &Scripted) -> [Effects; 3] {
    let produce_all = |from: u32, to: u32| {
        for partition in 0..4 {
            let base = u32::try_from(partition).unwrap() * 100_000;
            produce_numbered(broker, partition, base + from..base + to);
        }
    };
    produce_all(0, 300);
    let start = |store: &Scripted| {
        Running::start(builder(broker), store.clone(), |_| {
            std::thread::sleep(Duration::from_micros(300));
            Ok(())
        })
    };
    let distinct = |effects: &[Effects]| {
        let mut all: Vec<_> = effects.iter().flat_map(Effects::list).collect();
        all.sort();
        all.dedup();
        all.len()
    };
    let first = start(a);
    first.wait(100);
    let second = start(b);
    produce_all(300, 600);
    // With a store each, or one for both: the first takes what it keeps a second time.
    second.wait_for("a rebalance", || leases(a) > 4);
    let two = [first.effects.clone(), second.effects.clone()];
    first.stop();
    second.wait_for("what was there", || distinct(&two) == 2_400);
    produce_all(600, 700);
    let third = start(a);
    let all = [two[0].clone(), two[1].clone(), third.effects.clone()];
    wait_for("all orders", || distinct(&all) == 2_800);
    // A position that was refused at the last revocation is the new owner's to reach again.
    let operator = Operator::new(broker);
    wait_for("the group at the end", || {
        (0..4).all(|partition| operator.committed(partition) == Some(700))
    });
    second.stop();
    third.stop();
    for partition in 0..4 {
        assert_eq!(operator.committed(partition), Some(700));
    }
    all
}

// C029, C030, C031, C032, C035, C043
#[test]
fn members_that_share_a_store_lose_and_repeat_nothing_while_they_come_and_go() {
    // Even though the mock cluster refuses every commit at a revocation: the store is the truth.
    let (broker, store) = (broker(4), Scripted::new());
    let effects = come_and_go(&broker, &store, &store);
    assert_eq!(repeated(&effects), [] as [&str; 0]);
}

#[test]
fn members_with_a_store_each_lose_nothing_while_they_come_and_go() {
    // What they repeat is what the mock cluster refused to commit at a revocation; a real broker
    // takes it.
    let (broker, a, b) = (broker(4), Scripted::new(), Scripted::new());
    come_and_go(&broker, &a, &b);
}

// C044
#[test]
fn members_with_a_store_each_repeat_nothing_that_the_group_was_told() {
    let (broker, a, b) = (broker(2), Scripted::new(), Scripted::new());
    let operator = Operator::new(&broker);
    let start = |store: &Scripted| {
        let often = builder(&broker).offset_interval(Duration::ZERO);
        Running::start(often, store.clone(), |_| Ok(()))
    };
    let first = start(&a);
    for partition in [0, 1] {
        let base = u32::try_from(partition).unwrap() * 100;
        produce_numbered(&broker, partition, base..base + 50);
        first.wait_for("the offset", || operator.committed(partition) == Some(50));
    }
    let second = start(&b);
    second.wait_for("its share", || !b.calls().is_empty());
    // Copies of both partitions' records into both: each member knows them by a restore, whoever
    // handled them. Only what the other handles from now on it cannot know.
    produce(&broker, 0, &[("order-1", "order-1"), ("new-0", "n")]);
    produce(&broker, 1, &[("order-101", "order-101"), ("new-1", "n")]);
    let all = [first.effects.clone(), second.effects.clone()];
    wait_for("the new ones", || {
        operator.committed(0) == Some(52) && operator.committed(1) == Some(52)
    });
    first.stop();
    second.stop();
    assert_eq!(repeated(&all), [] as [&str; 0]);
    assert_eq!(all.iter().map(Effects::len).sum::<usize>(), 102);
}

#[test]
fn partitions_that_stay_are_not_disturbed_under_cooperative_rebalancing() {
    let broker = broker(2);
    let cooperative = || {
        let mut config = config(&broker);
        config.set("partition.assignment.strategy", "cooperative-sticky");
        builder_with(config)
    };
    produce_numbered(&broker, 0, 0..1);
    produce_numbered(&broker, 1, 10..11);
    let (a, b) = (Scripted::new(), Scripted::new());
    let first = Running::start(cooperative(), a.clone(), |_| Ok(()));
    first.wait(2);
    // Told in time: the mock cluster refuses what is committed at a revocation.
    let operator = Operator::new(&broker);
    first.wait_for("the offsets", || {
        (operator.committed(0), operator.committed(1)) == (Some(1), Some(1))
    });
    let second = Running::start(cooperative(), b.clone(), |_| Ok(()));
    second.wait_for("the late joiner's share", || !b.calls().is_empty());
    let leases = |store: &Scripted, name: &str| {
        store
            .calls()
            .iter()
            .filter(|call| call.starts_with(name))
            .count()
    };
    // Each once, and one given up.
    assert_eq!((leases(&a, "lease"), leases(&a, "release")), (2, 1));
    produce_numbered(&broker, 0, 1..2);
    produce_numbered(&broker, 1, 11..12);
    wait_for("the new records", || {
        first.effects.len() + second.effects.len() >= 4
    });
    assert_eq!((first.effects.len(), second.effects.len()), (3, 1));
    first.stop();
    second.stop();
}

// C040
#[test]
fn a_handler_that_takes_ten_poll_intervals_keeps_its_membership() {
    keeps_its_membership(Ordering::Partition, |delivery| {
        if delivery.offset() == 0 {
            std::thread::sleep(10 * POLL_INTERVAL);
        }
        Ok(())
    });
}

#[test]
fn a_record_that_is_tried_again_after_ten_poll_intervals_keeps_the_membership() {
    for ordering in [Ordering::Partition, Ordering::Key] {
        keeps_its_membership(ordering, |delivery| {
            if delivery.offset() == 0 && delivery.attempt() == 1 {
                return Err("not yet".into());
            }
            Ok(())
        });
    }
}

/// The least that librdkafka allows beside the session time-out.
const POLL_INTERVAL: Duration = Duration::from_millis(1500);

fn keeps_its_membership(
    ordering: Ordering,
    judge: impl Fn(&Delivery<'_>) -> HandlerResult + Send + Sync + 'static,
) {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..2);
    let mut impatient = config(&broker);
    impatient.set(
        "max.poll.interval.ms",
        POLL_INTERVAL.as_millis().to_string(),
    );
    let pause = 10 * POLL_INTERVAL;
    let builder = builder_with(impatient)
        .ordering(ordering)
        .retry(RetryPolicy::exponential(2, pause, pause));
    let running = Running::start(builder, store.clone(), judge);
    running.wait(2);
    let report = running.stop();
    assert_eq!((report.counts.new, report.counts.redelivery), (2, 0));
    let calls = store.calls();
    let leases = calls.iter().filter(|call| call.starts_with("lease"));
    assert_eq!(leases.count(), 1, "{calls:?}");
}

// C033, C036
#[test]
fn work_that_is_late_at_a_revocation_ends_nothing_and_leaves_no_offset() {
    let broker = broker(2);
    produce(&broker, 0, &[("slow-0", "a")]);
    produce(&broker, 1, &[("slow-1", "a")]);
    let (started, finish) = (Gate::default(), Gate::default());
    let (begun, end) = (started.clone(), finish.clone());
    let short = || builder(&broker).drain_limit(Duration::from_millis(50));
    let (a, b) = (Scripted::new(), Scripted::new());
    let first = Running::start(short(), a.clone(), move |_| {
        begun.open();
        end.pass();
        Ok(())
    });
    started.pass();
    first.wait_for("both leases", || a.calls().len() == 2);
    let second = Running::start(short(), b.clone(), |_| Ok(()));
    second.wait_for("its share", || second.effects.len() > 0);
    finish.open();
    // Both of the first's records end: the one that was kept is handled again or marked late,
    // and whichever it is, it goes on.
    produce_numbered(&broker, 0, 10..12);
    produce_numbered(&broker, 1, 20..22);
    let operator = Operator::new(&broker);
    wait_for("both ends", || {
        assert!(!first.has_ended() && !second.has_ended());
        operator.committed(0) == Some(3) && operator.committed(1) == Some(3)
    });
    first.stop_hasty();
    second.stop_hasty();
}

#[test]
fn a_member_is_told_which_partitions_it_has_whenever_that_changes() {
    let broker = broker(2);
    let start = || {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&told);
        let hook = move |partitions: &[TopicPartition]| {
            tell.lock().unwrap().push(partitions.len());
        };
        let often = builder(&broker).on_assignment(hook);
        (Running::start(often, Scripted::new(), |_| Ok(())), told)
    };
    let last = |told: &Mutex<Vec<usize>>| told.lock().unwrap().last().copied();
    let (first, of_first) = start();
    wait_for("both partitions", || last(&of_first) == Some(2));
    let (second, of_second) = start();
    wait_for("one each", || {
        (last(&of_first), last(&of_second)) == (Some(1), Some(1))
    });
    // All were taken away before they were given anew.
    assert!(of_first.lock().unwrap().contains(&0));
    first.stop();
    assert_eq!(last(&of_first), Some(0));
    wait_for("both of the other", || last(&of_second) == Some(2));
    second.stop();
}
