//! What a handler is told about the past: doubt, tokens, recorded results.

use std::sync::{Arc, Mutex};

use idempotent_consumer::Error;

use crate::scripted::Scripted;
use crate::support::*;

/// Starts a consumer that notes the offsets of records that are in doubt.
fn doubting(
    store: &Scripted,
    builder: idempotent_consumer::Builder,
) -> (Running, Arc<Mutex<Vec<i64>>>) {
    let doubts = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&doubts);
    let running = Running::start(builder, store.clone(), move |delivery| {
        if delivery.in_doubt() {
            noted.lock().unwrap().push(delivery.offset());
        }
        Ok(())
    });
    (running, doubts)
}

#[test]
fn after_a_crash_the_records_behind_the_head_are_in_doubt_a_thousand_at_most() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..5);
    consume(builder(&broker), store.clone(), 5);
    produce_numbered(&broker, 0, 5..1_500);
    // Effects whose marks never came: as much of a crash as one process can have of itself.
    store.fail_after(0);
    let (crashing, doubts) = doubting(&store, builder(&broker));
    assert!(matches!(crashing.error(), Error::Store(_)));
    assert_eq!(
        *doubts.lock().unwrap(),
        [] as [i64; 0],
        "the stop before was clean"
    );
    assert_eq!(store.head(0), Some(5));
    store.mend();
    let (running, doubts) = doubting(&store, builder(&broker));
    running.wait(1_495);
    let report = running.stop();
    assert!(
        doubts.lock().unwrap().iter().copied().eq(5..1_005),
        "{doubts:?}"
    );
    assert_eq!((report.counts.in_doubt, report.counts.new), (1_000, 1_495));
    // And that stop was clean again.
    produce_numbered(&broker, 0, 1_500..1_502);
    let (running, doubts) = doubting(&store, builder(&broker));
    running.wait(2);
    assert_eq!(running.stop().counts.in_doubt, 0);
    assert_eq!(*doubts.lock().unwrap(), [] as [i64; 0]);
}

#[test]
fn a_failed_record_is_not_in_doubt_after_an_orderly_end() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_numbered(&broker, 0, 0..2);
    let failing = Running::start(builder(&broker), store.clone(), |_| Err("no".into()));
    assert!(matches!(failing.error(), Error::Handler { .. }));
    let (running, doubts) = doubting(&store, builder(&broker));
    running.wait(2);
    running.stop();
    // Its handler said that the effect did not happen.
    assert_eq!(*doubts.lock().unwrap(), [] as [i64; 0]);
}

#[test]
fn a_token_is_one_for_all_attempts_copies_and_restarts_of_a_key() {
    let (broker, store) = (broker(2), Scripted::new());
    produce(
        &broker,
        0,
        &[("order-1", "a"), ("order-1", "a"), ("order-2", "b")],
    );
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let start = |store: &Scripted| {
        let (noted, copies) = (Arc::clone(&tokens), Arc::clone(&tokens));
        let builder = builder(&broker).on_duplicate(move |delivery, _| {
            let key = delivery.key().unwrap().to_vec();
            copies.lock().unwrap().push((key, delivery.token()));
        });
        Running::start(builder, store.clone(), move |delivery| {
            let key = delivery.key().unwrap().to_vec();
            noted.lock().unwrap().push((key, delivery.token()));
            if delivery.attempt() == 1 {
                Err("again".into())
            } else {
                Ok(())
            }
        })
    };
    let running = start(&store);
    running.wait(2);
    running.stop();
    produce(&broker, 1, &[("order-1", "a"), ("order-3", "c")]);
    let running = start(&store);
    running.wait(1);
    running.stop();
    let mut tokens = std::mem::take(&mut *tokens.lock().unwrap());
    assert_eq!(
        tokens.len(),
        2 + 1 + 2 + 1 + 2,
        "attempts and copies: {tokens:?}"
    );
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), 3, "{tokens:?}");
    let mut distinct: Vec<_> = tokens.into_iter().map(|(_, token)| token).collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 3);
    assert!(distinct.iter().all(|token| token.len() == 32));
}

#[test]
fn copies_are_answered_with_what_the_first_recorded_in_the_same_fetch_and_after_a_restart() {
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    produce(
        &broker,
        0,
        &[
            ("order-1", "a"),
            ("order-1", "a"),
            ("plain", "p"),
            ("plain", "p"),
        ],
    );
    let answers = Effects::default();
    let start = || {
        let noted = answers.clone();
        let builder = builder(&broker).on_duplicate(move |delivery, result| {
            let result = result.map(String::from_utf8_lossy);
            noted.add(format!("{}: {result:?}", delivery.offset()));
        });
        Running::with(builder, sled(dir.path()), |delivery, effects| {
            if delivery.key() == Some(b"plain") {
                return Ok(());
            }
            effects.record("overwritten")?;
            effects.record(&format!("receipt of {}", delivery.offset()))
        })
    };
    let running = start();
    running.wait_for("both answers", || answers.len() == 2);
    running.stop();
    produce(&broker, 0, &[("order-1", "a")]);
    let running = start();
    running.wait_for("the third answer", || answers.len() == 3);
    running.stop();
    let receipt = r#"Some("\"receipt of 0\"")"#;
    let expected = [
        format!("1: {receipt}"),
        "3: None".to_owned(),
        format!("4: {receipt}"),
    ];
    assert_eq!(answers.list(), expected);
}

#[test]
fn a_failed_attempt_records_nothing() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a"), ("order-1", "a")]);
    let answers = Effects::default();
    let noted = answers.clone();
    let builder = builder(&broker).on_duplicate(move |_, result| {
        noted.add(format!("{result:?}"));
    });
    let running = Running::with(builder, store, |delivery, effects| {
        if delivery.attempt() == 1 {
            effects.record("of the failed attempt")?;
            return Err("no".into());
        }
        Ok(())
    });
    running.wait_for("the answer", || answers.len() == 1);
    running.stop();
    assert_eq!(answers.list(), ["None"]);
}

#[test]
fn no_copy_is_answered_before_its_first_is_durable() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a"), ("order-1", "a")]);
    store.block(true);
    let (answers, looked_at) = (Effects::default(), store.clone());
    let noted = answers.clone();
    let builder = builder(&broker)
        .on_duplicate(move |_, _| noted.add(format!("{} durable", looked_at.marks())));
    let running = Running::start(builder, store.clone(), |_| Ok(()));
    running.wait_for("the store to be asked", || store.waiting() > 0);
    assert_eq!(answers.len(), 0);
    store.block(false);
    running.wait_for("the answer", || answers.len() == 1);
    running.stop();
    assert_eq!(answers.list(), ["1 durable"]);
}

#[test]
fn a_hook_that_panics_ends_the_consumer() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(
        &broker,
        0,
        &[("order-1", "a"), ("order-1", "a"), ("order-2", "b")],
    );
    let builder = builder(&broker).on_duplicate(|_, _| panic!("the hook's own bug"));
    let error = Running::start(builder, store, |_| Ok(())).error();
    assert!(matches!(error, Error::Panicked), "{error}");
}
