//! Nothing moves before its mark is durable.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use idempotent_consumer::Error;

use crate::scripted::Scripted;
use crate::support::*;

/// The default of five milliseconds for a mark, and a commit.
const SOON: Duration = Duration::from_millis(20);

#[test]
fn no_offset_is_committed_while_the_store_has_not_returned() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..50);
    store.block(true);
    let often = builder(&broker).offset_interval(Duration::ZERO);
    let running = Running::start(often, store.clone(), |_| Ok(()));
    running.wait(50);
    running.wait_for("the store to be asked", || store.waiting() > 0);
    let operator = Operator::new(&broker);
    // Many times the interval: each question is a round trip.
    for _ in 0..50 {
        assert_eq!(operator.committed(0), None);
    }
    store.block(false);
    running.wait_for("the offset", || operator.committed(0) == Some(50));
    running.stop();
}

#[test]
fn the_groups_offset_is_never_above_the_stores_head() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..1_500);
    let often = builder(&broker).offset_interval(Duration::ZERO);
    let running = Running::start(often, store.clone(), |_| Ok(()));
    let operator = Operator::new(&broker);
    running.wait_for("the end", || {
        // Asked in this order: the head only grows.
        let committed = operator.committed(0);
        assert!(committed <= store.head(0));
        committed == Some(1_500)
    });
    running.stop();
}

#[test]
fn with_one_uncommitted_record_each_mark_is_durable_before_the_next_effect() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..40);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (noted, looked_at) = (Arc::clone(&seen), store.clone());
    let one = builder(&broker).uncommitted_records_max(1);
    let running = Running::start(one, store, move |_| {
        noted.lock().unwrap().push(looked_at.marks());
        Ok(())
    });
    running.wait(40);
    running.stop();
    assert!(seen.lock().unwrap().iter().copied().eq(0..40), "{seen:?}");
}

#[test]
fn at_most_a_thousand_effects_are_ahead_of_the_store() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..2_500);
    store.block(true);
    let (ahead, looked_at) = (Arc::new(Mutex::new(0)), store.clone());
    let most = Arc::clone(&ahead);
    let running = Running::start(builder(&broker), store.clone(), move |delivery| {
        let done = usize::try_from(delivery.offset()).unwrap() + 1;
        let mut most = most.lock().unwrap();
        *most = done.saturating_sub(looked_at.marks()).max(*most);
        Ok(())
    });
    running.wait(1_000);
    // A record more would come at once: the rest of the fetch is there.
    let end = Instant::now() + Duration::from_millis(200);
    while Instant::now() < end {
        assert_eq!(running.effects.len(), 1_000);
        std::thread::yield_now();
    }
    store.block(false);
    running.wait(2_500);
    running.stop();
    assert_eq!(*ahead.lock().unwrap(), 1_000);
}

#[test]
fn a_mark_is_durable_soon_without_another_record() {
    let (broker, store) = (broker(1), Scripted::new());
    let at = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&at);
    let running = Running::start(builder(&broker), store.clone(), move |_| {
        *noted.lock().unwrap() = Some(Instant::now());
        Ok(())
    });
    // The fastest of many, and of more where the machine is busy: what is promised, and not how
    // busy it is. The looks at the store are 2 ms apart.
    let (mut fastest, end) = (Duration::MAX, Instant::now() + DEADLINE);
    for n in 0.. {
        if n >= 20 && (fastest < SOON || Instant::now() > end) {
            break;
        }
        produce_numbered(&broker, 0, n..n + 1);
        running.wait_for("the mark", || store.head(0) == Some(i64::from(n) + 1));
        fastest = fastest.min(at.lock().unwrap().unwrap().elapsed());
    }
    running.stop();
    assert!(fastest < SOON, "{fastest:?}");
    assert!(
        fastest >= Duration::from_millis(4),
        "{fastest:?}: one sync for each record"
    );
}

// C085
#[test]
fn a_store_that_fails_stops_the_consumer_with_its_own_error_and_nothing_is_committed_after_it() {
    let (broker, store) = (broker(2), Scripted::new());
    store.fail_after(3);
    let often = builder(&broker).offset_interval(Duration::ZERO);
    let running = Running::start(often, store.clone(), |_| Ok(()));
    let operator = Operator::new(&broker);
    for n in 0..3 {
        produce_numbered(&broker, 0, n..n + 1);
        running.wait_for("a commit", || {
            store.commits() == usize::try_from(n).unwrap() + 1
        });
        // After the failure nobody tells the group of it any more.
        running.wait_for("the offset", || {
            operator.committed(0) == Some(i64::from(n) + 1)
        });
    }
    produce_numbered(&broker, 0, 3..10);
    produce_numbered(&broker, 1, 10..20);
    let error = running.error();
    assert!(matches!(error, Error::Store(_)), "{error}");
    assert!(error.to_string().contains("told to fail"), "{error}");
    assert_eq!(
        (operator.committed(0), operator.committed(1)),
        (Some(3), None)
    );
    let released = store
        .calls()
        .iter()
        .filter(|call| call.starts_with("release"))
        .count();
    assert_eq!(
        released,
        0,
        "effects without marks are in doubt: {:?}",
        store.calls()
    );
}

#[test]
fn a_store_that_panics_stops_the_consumer() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..3);
    store.panic();
    let running = Running::start(builder(&broker), store.clone(), |_| Ok(()));
    let error = running.error();
    assert!(matches!(error, Error::Store(_)), "{error}");
    assert_eq!(store.head(0), None);
    assert_eq!(store.calls(), ["lease 0"]);
}

#[test]
fn results_of_the_largest_size_fit_with_the_marks_of_others() {
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    produce_numbered(&broker, 0, 0..40);
    let running = Running::with(builder(&broker), sled(dir.path()), |_, effects| {
        effects.record_bytes(vec![7; 64 << 10])
    });
    running.wait(40);
    assert_eq!(running.stop().counts.new, 40);
}
