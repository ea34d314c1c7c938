//! Dead letters that are tried again: they are who they were.

use std::sync::{Arc, Mutex};

use idempotent_consumer::key::{self, Recipe, Scope};
use idempotent_consumer::store::Forget;
use idempotent_consumer::testkit::{EmbeddedBroker, Produced};
use idempotent_consumer::{Builder, DeadLetter, Delivery, HandlerError};

use crate::letters::*;
use crate::scripted::Scripted;
use crate::support::*;

const PARKED: &str = "orders.parked";

type Tokens = Arc<Mutex<Vec<String>>>;

/// Starts a consumer that notes the token of each record that it tries.
fn start(builder: Builder, store: &Scripted, tokens: &Tokens, fails: bool) -> Running {
    let tokens = Arc::clone(tokens);
    Running::with(
        builder,
        store.clone(),
        move |delivery: &Delivery<'_>, effects| {
            tokens.lock().unwrap().push(delivery.token());
            if fails {
                return Err(HandlerError::reject("no such account"));
            }
            effects.record("receipt")?;
            Ok(())
        },
    )
}

/// A consumer of the letters.
fn replaying(broker: &EmbeddedBroker) -> Builder {
    builder(broker).topics([LETTERS]).replay_from([LETTERS])
}

/// Has a record fail; its letter lies in the dead-letter topic afterwards.
fn bury(builder: Builder, store: &Scripted, tokens: &Tokens) {
    let before = tokens.lock().unwrap().len();
    let running = start(builder, store, tokens, true);
    running.wait_for("the attempt", || tokens.lock().unwrap().len() > before);
    // In order: what is in hand is seen through.
    assert_eq!(running.stop().counts.dead_lettered, 1);
}

/// Consumes until the next copy is shown, and gives its result.
fn answer(builder: Builder, store: &Scripted) -> (usize, Option<Vec<u8>>) {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&shown);
    let builder = builder.on_duplicate(move |_, result| {
        noted.lock().unwrap().push(result.map(<[u8]>::to_vec));
    });
    let running = Running::start(builder, store.clone(), |_| Ok(()));
    running.wait_for("the copy", || !shown.lock().unwrap().is_empty());
    let effects = running.effects.len();
    running.stop();
    let result = shown.lock().unwrap().remove(0);
    (effects, result)
}

const RECEIPT: Option<&[u8]> = Some(b"\"receipt\"");

// C025
#[test]
fn a_letter_that_succeeds_answers_for_its_record_when_that_is_sent_again() {
    for scope in [Scope::Topic, Scope::Partition] {
        let (broker, store, tokens) = (broker_with_letters(2), Scripted::new(), Tokens::default());
        // Its letter lies in another partition than it did.
        produce(&broker, 1, &[("order-1", "a")]);
        bury(burying(&broker).scope(scope), &store, &tokens);
        let running = start(replaying(&broker).scope(scope), &store, &tokens, false);
        running.wait(1);
        let effects = running.effects.list();
        assert_eq!(running.stop().counts.new, 1);
        assert_eq!(effects, ["0:0:order-1=a"]);
        {
            let tokens = tokens.lock().unwrap();
            assert_eq!(tokens[0], tokens[1], "{scope:?}");
        }
        produce(&broker, 1, &[("order-1", "a")]);
        let (effects, result) = answer(burying(&broker).scope(scope), &store);
        assert_eq!((effects, result.as_deref()), (0, RECEIPT), "{scope:?}");
    }
}

// C025
#[test]
fn a_record_that_is_sent_again_and_succeeds_answers_for_its_letter() {
    for scope in [Scope::Topic, Scope::Partition] {
        let (broker, store, tokens) = (broker_with_letters(2), Scripted::new(), Tokens::default());
        produce(&broker, 1, &[("order-1", "a")]);
        bury(burying(&broker).scope(scope), &store, &tokens);
        produce(&broker, 1, &[("order-1", "a")]);
        let running = start(burying(&broker).scope(scope), &store, &tokens, false);
        running.wait(1);
        running.stop();
        let (effects, result) = answer(replaying(&broker).scope(scope), &store);
        assert_eq!((effects, result.as_deref()), (0, RECEIPT), "{scope:?}");
    }
}

// C025
#[test]
fn letters_are_known_by_their_first_coordinates_where_those_are_the_key() {
    let (broker, store, tokens) = (broker_with_letters(2), Scripted::new(), Tokens::default());
    let by_place = |builder: Builder| builder.key(key::coordinates());
    produce(&broker, 1, &[("order-1", "a")]);
    // Two letters about one record: a crash came between the first and its mark.
    store.fail_after(0);
    let running = start(by_place(burying(&broker)), &store, &tokens, true);
    running.error();
    store.mend();
    bury(by_place(burying(&broker)), &store, &tokens);
    assert_eq!(written(&broker), 2);
    let copied = Gate::default();
    let seen = copied.clone();
    let builder = by_place(replaying(&broker)).on_duplicate(move |_, _| seen.open());
    let running = start(builder, &store, &tokens, false);
    running.wait_for("the second letter", || copied.is_open());
    let effects = running.effects.list();
    let counts = running.stop().counts;
    assert_eq!(effects, ["0:0:order-1=a"]);
    assert_eq!((counts.new, counts.duplicate), (1, 1));
    let tokens = tokens.lock().unwrap();
    assert_eq!(tokens.len(), 3);
    assert!(tokens.iter().all(|token| *token == tokens[0]));
}

// C025
#[test]
fn a_letter_about_a_record_that_succeeded_after_all_takes_no_effect() {
    let (broker, store, tokens) = (broker_with_letters(1), Scripted::new(), Tokens::default());
    let by_place = |builder: Builder| builder.key(key::coordinates());
    produce(&broker, 0, &[("order-1", "a")]);
    store.fail_after(0);
    start(by_place(burying(&broker)), &store, &tokens, true).error();
    store.mend();
    let running = start(by_place(burying(&broker)), &store, &tokens, false);
    running.wait(1);
    running.stop();
    assert_eq!(written(&broker), 1);
    let (effects, result) = answer(by_place(replaying(&broker)), &store);
    assert_eq!((effects, result.as_deref()), (0, RECEIPT));
}

#[test]
fn a_letter_that_fails_again_is_still_the_record_that_it_was() {
    let (broker, store, tokens) = (broker_with_letters(1), Scripted::new(), Tokens::default());
    broker.create_topic(PARKED, 1).unwrap();
    produce(&broker, 0, &[("order-1", "a")]);
    consume(burying(&broker), store.clone(), 1);
    produce(&broker, 0, &[("order-2", "a")]);
    bury(burying(&broker), &store, &tokens);
    let parking = replaying(&broker).dead_letter(DeadLetter::to_topic(PARKED));
    bury(parking, &store, &tokens);
    let last = builder(&broker).topics([PARKED]).replay_from([PARKED]);
    let running = start(last, &store, &tokens, false);
    running.wait(1);
    running.stop();
    {
        let tokens = tokens.lock().unwrap();
        assert_eq!(tokens.len(), 3);
        assert!(tokens.iter().all(|token| *token == tokens[0]));
    }
    produce(&broker, 0, &[("order-2", "a")]);
    let (effects, result) = answer(burying(&broker), &store);
    assert_eq!((effects, result.as_deref()), (0, RECEIPT));
}

type Header<'a> = (&'a str, Option<&'a [u8]>);

#[test]
fn where_a_restore_took_a_dead_letter_for_done_it_is_tried_once_it_is_forgotten() {
    let (broker, tokens) = (broker_with_letters(1), Tokens::default());
    produce(&broker, 0, &[("order-1", "a")]);
    bury(burying(&broker), &Scripted::new(), &tokens);
    // Another member takes over, with a store of its own.
    let dir = tempfile::tempdir().unwrap();
    produce(&broker, 0, &[("last", "l")]);
    let (effects, report) = consume(burying(&broker), sled(dir.path()), 1);
    assert_eq!(
        (effects, report.counts.restored),
        (vec!["0:1:last=l".into()], 1)
    );
    let store = sled(dir.path());
    let forgotten = store.forget(&Forget::key(TOPIC, "order-1")).unwrap();

    let (effects, _) = consume(replaying(&broker), sled(dir.path()), 1);
    assert_eq!(effects, ["0:0:order-1=a"], "{forgotten:?}");
}

/// Headers of a record that says that it was another one, as a letter does.
fn forged<'a>(topic: &'a str, offset: &'a [u8]) -> [Header<'a>; 3] {
    [
        ("kafka_dlt-original-topic", Some(topic.as_bytes())),
        ("kafka_dlt-original-partition", Some(&[0, 0, 0, 0])),
        ("kafka_dlt-original-offset", Some(offset)),
    ]
}

fn with<'a>(headers: &'a [Header<'a>]) -> Produced<'a> {
    Produced {
        key: Some(b"order-1"),
        value: Some(b"a"),
        headers,
        ..Produced::default()
    }
}

#[test]
fn headers_of_a_letter_change_nothing_where_letters_are_not_expected() {
    let by_key: (Recipe, _) = (key::record_key(), (1, 2));
    for (recipe, expected) in [(key::coordinates(), (3, 0)), by_key] {
        let (broker, store) = (broker_with_letters(1), Scripted::new());
        // Of another topic, so that it would have another identity there.
        let headers = forged("elsewhere", &[0; 8]);
        let records = [with(&[]), with(&headers), with(&headers)];
        broker.produce(TOPIC, &records).unwrap();
        // Letters are expected of another topic.
        let both = builder(&broker).topics([TOPIC, LETTERS]);
        let builder = both.key(recipe).replay_from([LETTERS]);
        let running = Running::start(builder, store.clone(), |_| Ok(()));
        running.wait_for("all three", || store.head(0) == Some(3));
        let counts = running.stop().counts;
        assert_eq!((counts.new, counts.duplicate), expected);
    }
}

#[test]
fn headers_that_name_no_place_change_nothing_where_letters_are_expected() {
    let (broker, store) = (broker_with_letters(1), Scripted::new());
    let offsets: [&[u8]; 3] = [b"0", &[0; 7], &[0xff; 8]];
    let headers = offsets.map(|offset| forged(TOPIC, offset));
    let records = headers.each_ref().map(|headers| with(headers));
    broker.produce(LETTERS, &records).unwrap();
    produce(&broker, 0, &[("order-0", "a")]);
    let both = builder(&broker)
        .key(key::coordinates())
        .topics([TOPIC, LETTERS])
        .replay_from([LETTERS]);
    let (effects, report) = consume(both, store, 4);
    assert_eq!((effects.len(), report.counts.new), (4, 4));
}
