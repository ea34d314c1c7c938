//! What a lane must not let through: behind a restore, behind a failed commit, after a panic.

use std::sync::atomic::{AtomicUsize, Ordering};

use idempotent_consumer::testkit::Produced;
use idempotent_consumer::{BoxError, Error, Record, key};

use crate::scripted::Scripted;
use crate::support::*;

/// A cut and regrown log: the group stands at the head, the record before it is another.
// C049
#[test]
fn a_log_that_was_cut_and_has_grown_again_is_noticed_at_a_plain_restart() {
    let (old, store) = (broker(1), Scripted::new());
    produce_numbered(&old, 0, 0..10);
    consume(builder(&old), store.clone(), 10);
    let new = broker(1);
    produce_numbered(&new, 0, 0..9);
    produce_numbered(&new, 0, 20..60);
    Operator::new(&new).set(0, 10);
    let running = Running::start(builder(&new), store, |_| Ok(()));
    let error = running.error();
    assert!(matches!(error, Error::TopicChanged { .. }), "{error}");
}

#[test]
fn after_a_failed_commit_no_further_effect_happens_where_each_must_be_durable_first() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..20);
    store.fail_after(1);
    let running = Running::start(builder(&broker).uncommitted_records_max(1), store, |_| {
        Ok(())
    });
    let effects = running.effects.clone();
    let error = running.error();
    assert!(matches!(error, Error::Store(_)), "{error}");
    assert_eq!(effects.len(), 2, "the first, and the one whose mark failed");
}

#[test]
fn what_took_effect_before_a_panic_in_a_key_function_is_marked() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..5);
    let seen = AtomicUsize::new(0);
    let recipe = key::with("panics", move |record: &Record<'_>| {
        // In a later window than the first five.
        assert!(
            seen.fetch_add(1, Ordering::Relaxed) < 5,
            "a bug in the key function"
        );
        Ok::<_, BoxError>(record.key().map(<[u8]>::to_vec))
    });
    let running = Running::start(builder(&broker).key(recipe), store.clone(), |_| Ok(()));
    running.wait(5);
    produce(&broker, 0, &[("one", "more")]);
    let error = running.error();
    assert!(matches!(error, Error::Panicked), "{error}");
    assert_eq!(store.head(0), Some(5));
}

#[test]
fn a_keyless_record_is_refused_even_if_it_had_to_wait_for_a_restore() {
    let (broker, store) = (broker(2), Scripted::new());
    produce_numbered(&broker, 0, 0..5);
    Operator::new(&broker).set(0, 5);
    let value = Some(&b"x"[..]);
    broker
        .produce(
            TOPIC,
            &[Produced {
                partition: 1,
                value,
                ..Produced::default()
            }],
        )
        .unwrap();
    // The restored keys cannot become durable, so the other partition waits at its gate.
    store.block(true);
    let running = Running::start(builder(&broker), store.clone(), |_| Ok(()));
    wait_for("a commit that is held up", || store.waiting() > 0);
    store.block(false);
    let effects = running.effects.clone();
    let error = running.error();
    assert!(matches!(error, Error::MissingKey { .. }), "{error}");
    assert_eq!(effects.len(), 0);
}
