//! A topic that is not the one that the store knows.

use idempotent_consumer::Error;

use crate::scripted::Scripted;
use crate::support::*;

// C057
#[test]
fn another_cluster_is_refused_with_both_ids() {
    let (old, dir) = (broker(1), tempfile::tempdir().unwrap());
    produce_numbered(&old, 0, 0..3);
    consume(builder(&old), sled(dir.path()), 3);
    let new = broker(1);
    produce_numbered(&new, 0, 0..3);
    let running = Running::start(builder(&new), sled(dir.path()), |_| Ok(()));
    let effects = running.effects.clone();
    let error = running.error();
    assert!(matches!(error, Error::Store(_)), "{error}");
    assert!(error.to_string().contains("cluster"), "{error}");
    assert_eq!(effects.len(), 0);
}

#[test]
fn a_partition_that_ends_before_the_head_is_another_topic() {
    let (old, store) = (broker(1), Scripted::new());
    produce_numbered(&old, 0, 0..10);
    consume(builder(&old), store.clone(), 10);
    let new = broker(1);
    produce_numbered(&new, 0, 20..25);
    let running = Running::start(builder(&new), store, |_| Ok(()));
    let effects = running.effects.clone();
    let error = running.error();
    assert!(matches!(error, Error::TopicChanged { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("orders[0]") && text.contains("10") && text.contains('5'),
        "{text}"
    );
    assert_eq!(effects.len(), 0, "not one is skipped in silence");
    assert_eq!(Operator::new(&new).committed(0), None);
}

// C048
#[test]
fn a_record_below_the_head_whose_key_is_not_known_is_not_passed_over() {
    let (old, store) = (broker(1), Scripted::new());
    produce_numbered(&old, 0, 0..10);
    consume(builder(&old), store.clone(), 10);
    let new = broker(1);
    produce_numbered(&new, 0, 20..60);
    let running = Running::start(builder(&new), store.clone(), |_| Ok(()));
    let effects = running.effects.clone();
    let error = running.error();
    assert!(matches!(error, Error::TopicChanged { .. }), "{error}");
    assert!(error.to_string().contains("offset 0"), "{error}");
    assert_eq!(effects.len(), 0);
    assert_eq!(Operator::new(&new).committed(0), None);
}

// C048, C049
#[test]
fn another_record_at_the_heads_last_offset_is_another_topic_and_no_offset_moves() {
    let (old, store) = (broker(1), Scripted::new());
    produce_numbered(&old, 0, 0..10);
    consume(builder(&old), store.clone(), 10);
    let new = broker(1);
    // The same up to the last one below the head.
    produce_numbered(&new, 0, 0..9);
    produce_numbered(&new, 0, 20..60);
    let often = builder(&new).offset_interval(std::time::Duration::ZERO);
    let running = Running::start(often, store.clone(), |_| Ok(()));
    let effects = running.effects.clone();
    let error = running.error();
    assert!(matches!(error, Error::TopicChanged { .. }), "{error}");
    assert!(error.to_string().contains("offset 9"), "{error}");
    assert_eq!(effects.len(), 0);
    assert_eq!(store.head(0), Some(10));
    assert_eq!(Operator::new(&new).committed(0), None);
}

#[test]
fn a_group_that_is_ahead_of_the_partition_itself_is_no_stretch_to_restore() {
    let new = broker(1);
    produce_numbered(&new, 0, 0..5);
    Operator::new(&new).set(0, 100);
    let running = Running::start(builder(&new), Scripted::new(), |_| Ok(()));
    let error = running.error();
    assert!(matches!(error, Error::TopicChanged { .. }), "{error}");
    assert!(error.to_string().contains("100"), "{error}");
}
