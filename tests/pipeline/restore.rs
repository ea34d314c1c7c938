//! Where the group is ahead of the store.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use idempotent_consumer::{Error, Restore, key};

use crate::files::copy;
use crate::scripted::Scripted;
use crate::support::*;

/// A group that has handled what is there, and forgets its store.
fn forgetful(partitions: i32, records: u32) -> idempotent_consumer::testkit::EmbeddedBroker {
    let broker = broker(partitions);
    produce_numbered(&broker, 0, 0..records);
    let count = usize::try_from(records).unwrap();
    consume(builder(&broker), Scripted::new(), count);
    broker
}

#[test]
fn keys_of_the_missing_stretch_are_read_without_a_handler_and_their_copies_recognised() {
    let broker = forgetful(1, 300);
    let store = Scripted::new();
    // The copies follow in the same fetch.
    produce(
        &broker,
        0,
        &[
            ("order-0", "order-0"),
            ("order-299", "order-299"),
            ("new", "n"),
        ],
    );
    let (effects, report) = consume(builder(&broker), store.clone(), 1);
    assert_eq!(effects, ["0:302:new=n"]);
    let counts = report.counts;
    assert_eq!((counts.restored, counts.duplicate, counts.new), (300, 2, 1));
    assert_eq!(store.head(0), Some(303));
    assert_eq!(Operator::new(&broker).committed(0), Some(303));
}

#[test]
fn a_copy_in_a_partition_that_needs_no_restore_waits_for_the_one_that_does() {
    let broker = forgetful(2, 2_000);
    produce(
        &broker,
        1,
        &[("order-1999", "order-1999"), ("new", "n"), ("last", "l")],
    );
    let store = Scripted::new();
    store.block(true);
    let looked_at = Gate::default();
    let seen = looked_at.clone();
    let telling = builder(&broker).key(key::with("telling", move |record| {
        if record.partition() == 1 {
            seen.open();
        }
        Ok(record.key().map(<[u8]>::to_vec))
    }));
    let running = Running::start(telling, store.clone(), |_| Ok(()));
    running.wait_for("the restore's commit", || store.waiting() > 0);
    running.wait_for("the copy to be read", || looked_at.is_open());
    // It would be handled at once.
    let end = Instant::now() + Duration::from_millis(200);
    while Instant::now() < end {
        assert_eq!(running.effects.list(), [] as [&str; 0]);
        std::thread::yield_now();
    }
    store.block(false);
    running.wait(2);
    let effects = running.effects.list();
    let report = running.stop();
    assert_eq!(effects, ["1:1:new=n", "1:2:last=l"]);
    assert_eq!(
        (report.counts.restored, report.counts.duplicate),
        (2_000, 1)
    );
}

#[test]
fn a_restore_tells_how_far_it_is_and_that_it_is_over_before_anything_is_handled() {
    const RECORDS: u32 = 2_000;
    let broker = forgetful(2, RECORDS);
    produce(&broker, 0, &[("new", "n")]);
    produce(&broker, 1, &[("other", "o")]);
    let told = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&told);
    // It is told about once a second: this restore takes more than two.
    let slow = key::with("slow", |record| {
        if matches!(record.key(), Some(b"order-700" | b"order-1400")) {
            std::thread::sleep(Duration::from_millis(1_100));
        }
        Ok(record.key().map(<[u8]>::to_vec))
    });
    let builder = builder(&broker).key(slow).on_restore(move |progress| {
        noted.lock().unwrap().push(progress.clone());
    });
    let seen = Arc::clone(&told);
    let running = Running::start(builder, Scripted::new(), move |_| {
        let told = seen.lock().unwrap();
        assert!(told.last().is_some_and(|last| last.done), "{told:?}");
        Ok(())
    });
    running.wait(2);
    let effects = running.effects.sorted();
    assert_eq!(running.stop().counts.retried, 0, "handled too early");
    assert_eq!(effects, ["0:2000:new=n", "1:0:other=o"]);
    let told = told.lock().unwrap();
    assert!(told.len() >= 3, "{told:?}");
    let (last, before) = told.split_last().unwrap();
    assert!(before.iter().all(|progress| !progress.done), "{told:?}");
    assert!(
        before.iter().all(|progress| progress.at < progress.to),
        "{told:?}"
    );
    for pair in told.windows(2) {
        assert!(pair[0].at < pair[1].at && pair[0].keys <= pair[1].keys);
    }
    for progress in told.iter() {
        assert_eq!(progress.partition.to_string(), "orders[0]");
        assert_eq!((progress.from.get(), progress.to.get()), (0, 2_000));
        assert_eq!(i64::try_from(progress.keys).unwrap(), progress.at.get());
    }
    assert!(last.done && last.at == last.to, "{last:?}");
}

#[test]
fn where_nothing_is_restored_nothing_is_told_of_it() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a")]);
    let told = Gate::default();
    for key in ["order-2", "order-3"] {
        produce(&broker, 0, &[(key, "b")]);
        let opened = told.clone();
        let telling = builder(&broker).on_restore(move |_| opened.open());
        consume(telling, store.clone(), 1);
    }
    assert!(!told.is_open());
}

// C022
#[test]
fn a_restore_that_ends_at_the_end_of_the_log_holds_up_no_other_partition() {
    let broker = forgetful(2, 10);
    let store = Scripted::new();
    let running = Running::start(builder(&broker), store.clone(), |_| Ok(()));
    running.wait_for("the restore", || store.head(0) == Some(10));
    produce(&broker, 1, &[("new", "n")]);
    running.wait(1);
    assert_eq!(running.stop().counts.restored, 10);
}

#[test]
fn a_restore_that_is_cut_short_does_not_move_the_group_back_and_is_taken_up_again() {
    let broker = forgetful(1, 3_000);
    let (store, operator) = (Scripted::new(), Operator::new(&broker));
    let hasty = || builder(&broker).offset_interval(Duration::ZERO);
    store.fail_after(1);
    let error = Running::start(hasty(), store.clone(), |_| Ok(())).error();
    assert!(matches!(error, Error::Store(_)), "{error}");
    store.mend();
    let head = store.head(0).unwrap();
    assert!(0 < head && head < 3_000, "not cut short: {head}");
    assert_eq!(operator.committed(0), Some(3_000));
    produce(&broker, 0, &[("order-2999", "order-2999"), ("new", "n")]);
    let running = Running::start(hasty(), store.clone(), |_| Ok(()));
    running.wait_for("the end", || {
        assert!(operator.committed(0) >= Some(3_000));
        store.head(0) == Some(3_002)
    });
    let effects = running.effects.list();
    let counts = running.stop().counts;
    assert_eq!(effects, ["0:3001:new=n"]);
    assert_eq!(i64::try_from(counts.restored).unwrap(), 3_000 - head);
}

// C044, C072
#[test]
fn a_store_that_is_behind_restores_from_its_head() {
    let (broker, behind) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..10);
    consume(builder(&broker), behind.clone(), 10);
    // Another member with a store of its own goes on.
    produce_numbered(&broker, 0, 10..30);
    let (_, report) = consume(builder(&broker), Scripted::new(), 20);
    assert_eq!(report.counts.restored, 10);
    produce(&broker, 0, &[("order-29", "order-29"), ("new", "n")]);
    let (effects, report) = consume(builder(&broker), behind, 1);
    assert_eq!(effects, ["0:31:new=n"]);
    assert_eq!((report.counts.restored, report.counts.duplicate), (20, 1));
    assert_eq!(
        report.counts.in_doubt, 1,
        "how the other ended is not known"
    );
}

#[test]
fn a_store_that_is_behind_is_refused_where_that_is_the_policy() {
    let broker = forgetful(1, 5);
    let strict = builder(&broker).restore(Restore::Refuse);
    let running = Running::start(strict, Scripted::new(), |_| Ok(()));
    let error = running.error();
    assert_eq!(behind(&error), (0, 5));
    assert!(error.to_string().contains("orders[0]"), "{error}");
    assert_eq!(Operator::new(&broker).committed(0), Some(5));
}

#[test]
fn a_group_that_was_set_to_the_start_is_ahead_of_no_store() {
    let broker = broker(1);
    produce_numbered(&broker, 0, 0..2);
    Operator::new(&broker).set(0, 0);
    let strict = builder(&broker).restore(Restore::Refuse);
    let (effects, report) = consume(strict, Scripted::new(), 2);
    assert_eq!((effects.len(), report.counts.restored), (2, 0));
}

#[test]
fn the_missing_stretch_is_left_alone_where_that_is_the_policy() {
    let broker = forgetful(1, 5);
    let store = Scripted::new();
    produce(&broker, 0, &[("order-0", "order-0"), ("new", "n")]);
    let careless = builder(&broker).restore(Restore::Ignore);
    let (effects, report) = consume(careless, store.clone(), 2);
    assert_eq!(effects, ["0:5:order-0=order-0", "0:6:new=n"]);
    assert_eq!((report.counts.restored, store.head(0)), (0, Some(7)));
}

/// Where a store stands that is refused because the group is ahead of it, and where the group does.
fn behind(error: &Error) -> (i64, i64) {
    let Error::StoreBehind {
        head, committed, ..
    } = error
    else {
        panic!("{error}")
    };
    (head.get(), committed.get())
}

// C072
#[test]
fn an_older_copy_of_the_store_that_was_put_back_is_told_what_it_lacks_before_anything_is_handled() {
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    let [store, backup] = ["store", "backup"].map(|name| dir.path().join(name));
    produce_numbered(&broker, 0, 0..5);
    consume(builder(&broker), sled(&store), 5);
    copy(&store, &backup);
    produce_numbered(&broker, 0, 5..10);
    consume(builder(&broker), sled(&store), 5);
    produce(&broker, 0, &[("order-9", "order-9"), ("new", "n")]);
    let strict = builder(&broker).restore(Restore::Refuse);
    let running = Running::start(strict, sled(&backup), |_| Ok(()));
    assert_eq!(behind(&running.error()), (5, 10));
    let (effects, report) = consume(builder(&broker), sled(&backup), 1);
    assert_eq!(effects, ["0:11:new=n"]);
    let counts = report.counts;
    assert_eq!((counts.restored, counts.duplicate, counts.new), (5, 1, 1));
}

// C044
#[test]
fn a_partition_that_comes_back_has_no_hole_where_another_member_worked() {
    let (broker, ours) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..50);
    consume(builder(&broker), ours.clone(), 50);
    produce_numbered(&broker, 0, 50..150);
    consume(builder(&broker), Scripted::new(), 100);
    produce_numbered(&broker, 0, 150..200);
    consume(builder(&broker), ours.clone(), 50);
    // Then all of it is sent again, the other's stretch included.
    produce_numbered(&broker, 0, 0..200);
    produce(&broker, 0, &[("new", "n")]);
    let (effects, report) = consume(builder(&broker), ours, 1);
    assert_eq!(effects, ["0:400:new=n"]);
    assert_eq!(report.counts.duplicate, 200);
}
