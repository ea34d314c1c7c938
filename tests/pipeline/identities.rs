//! Each key recipe from end to end, and keys and headers at their limits.

use std::sync::{Arc, Mutex};

use idempotent_consumer::Error;
use idempotent_consumer::key::{self, Recipe};
use idempotent_consumer::testkit::Produced;

use crate::scripted::Scripted;
use crate::support::*;

/// Consumes `records` and gives the offsets that took effect; the last record must be new.
fn handled(recipe: Recipe, records: &[Produced<'_>]) -> Vec<i64> {
    let (broker, store) = (broker(1), Scripted::new());
    broker.produce(TOPIC, records).unwrap();
    let end = i64::try_from(records.len()).unwrap();
    let running = Running::start(builder(&broker).key(recipe), store.clone(), |_| Ok(()));
    running.wait_for("the last record", || store.head(0) == Some(end));
    let effects = running.effects.list();
    running.stop();
    let offset = |effect: &String| effect.split(':').nth(1).unwrap().parse().unwrap();
    effects.iter().map(offset).collect()
}

fn valued(value: &str) -> Produced<'_> {
    Produced {
        value: Some(value.as_bytes()),
        ..Produced::default()
    }
}

#[test]
fn the_value_as_identity() {
    let records = [
        valued("line a"),
        valued("line b"),
        valued("line a"),
        valued(""),
    ];
    assert_eq!(handled(key::value(), &records), [0, 1, 3]);
}

// C020
#[test]
fn a_header_as_identity_whatever_key_and_position() {
    let [a, b] = ["a", "b"].map(|id| Some(id.as_bytes()));
    let (first, second, third) = ([("id", a)], [("x", b), ("id", b)], [("id", a), ("id", a)]);
    let with = |key: &'static [u8], headers| Produced {
        key: Some(key),
        value: Some(b"v"),
        headers,
        ..Produced::default()
    };
    let records = [with(b"1", &first), with(b"1", &second), with(b"2", &third)];
    assert_eq!(handled(key::header("id"), &records), [0, 1]);
}

// C020
#[test]
fn two_different_identities_in_one_record_are_none() {
    let broker = broker(1);
    let headers = [("id", Some(&b"a"[..])), ("id", Some(b"b"))];
    let record = Produced {
        headers: &headers,
        ..Produced::default()
    };
    broker.produce(TOPIC, &[record]).unwrap();
    let by_header = builder(&broker).key(key::header("id"));
    let error = Running::start(by_header, Scripted::new(), |_| Ok(())).error();
    assert!(matches!(error, Error::MissingKey { .. }), "{error}");
    assert!(error.to_string().contains("more than once"), "{error}");
}

#[test]
fn a_null_header_is_no_identity() {
    let broker = broker(1);
    let record = Produced {
        headers: &[("id", None)],
        ..Produced::default()
    };
    broker.produce(TOPIC, &[record]).unwrap();
    let by_header = builder(&broker).key(key::header("id"));
    let error = Running::start(by_header, Scripted::new(), |_| Ok(())).error();
    assert!(matches!(error, Error::MissingKey { .. }), "{error}");
}

#[test]
fn a_json_pointer_as_identity() {
    let records = [
        valued(r#"{"order":{"id":7}}"#),
        valued(r#"{"order":{"id":"7"}}"#),
        valued(r#"{"order":{"id":9007199254740993}}"#),
        valued(r#"{"order":{"id":9007199254740992}}"#),
        valued(r#"{"order":{"id":7}}"#),
    ];
    let recipe = key::json_pointer("/order/id").unwrap();
    assert_eq!(handled(recipe, &records), [0, 1, 2, 3]);
}

#[test]
fn source_and_id_of_a_cloud_event_as_identity() {
    let (binary, other) = (
        [("ce_source", Some(&b"/pay"[..])), ("ce_id", Some(b"1"))],
        [("ce_source", Some(&b"/ship"[..])), ("ce_id", Some(b"1"))],
    );
    let with = |headers| Produced {
        value: Some(b"v"),
        headers,
        ..Produced::default()
    };
    let records = [
        with(&binary),
        with(&other),
        with(&binary),
        valued(r#"{"source":"/pay","id":"2"}"#),
        valued(r#"{"source":"/pay","id":"2"}"#),
    ];
    assert_eq!(handled(key::cloud_events(), &records), [0, 1, 3]);
}

#[test]
fn coordinates_as_identity_let_copies_pass() {
    let records = [valued("a"), valued("a")];
    assert_eq!(handled(key::coordinates(), &records), [0, 1]);
}

#[test]
fn a_function_as_identity() {
    let first_word = key::with("first-word-1", |record| {
        let value = record.value().unwrap_or_default();
        Ok(value.split(|byte| *byte == b' ').next().map(<[u8]>::to_vec))
    });
    let broker = broker(1);
    broker
        .produce(TOPIC, &[valued("a 1"), valued("b 1"), valued("a 1")])
        .unwrap();
    let store = Scripted::new();
    let running = Running::start(builder(&broker).key(first_word), store.clone(), |_| Ok(()));
    running.wait_for("the last record", || store.head(0) == Some(3));
    assert_eq!(running.effects.len(), 2);
    running.stop();
}

// C087
#[test]
fn keys_of_any_length_count_with_every_byte() {
    let long = vec![b'k'; 900_000];
    let mut other = long.clone();
    other[899_999] = b'x';
    let keys: Vec<&[u8]> = vec![&long[..0], &long[..1], &long[..255], &long[..65_536], &long];
    let twice = keys.iter().chain(&keys).copied();
    let records: Vec<_> = twice
        .chain([&other[..]])
        .map(|key| Produced {
            key: Some(key),
            value: Some(b"v"),
            ..Produced::default()
        })
        .collect();
    // On disk: that is where long keys hurt.
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    broker.produce(TOPIC, &records).unwrap();
    let (effects, report) = consume(builder(&broker), sled(dir.path()), 6);
    assert_eq!(effects.len(), 6);
    assert_eq!((report.counts.new, report.counts.duplicate), (6, 5));
}

#[test]
fn two_thousand_headers_arrive_in_their_order_with_repeats_and_nulls() {
    let names: Vec<_> = (0..2_000).map(|n| format!("h{}", n % 500)).collect();
    let headers: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(n, name)| (name.as_str(), (n % 3 > 0).then_some(name.as_bytes())))
        .collect();
    let broker = broker(1);
    let record = Produced {
        key: Some(b"k"),
        headers: &headers,
        ..Produced::default()
    };
    broker.produce(TOPIC, &[record]).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let running = Running::start(builder(&broker), Scripted::new(), move |delivery| {
        let owned =
            |(name, value): (&[u8], Option<&[u8]>)| (name.to_vec(), value.map(<[u8]>::to_vec));
        noted
            .lock()
            .unwrap()
            .extend(delivery.headers().iter().map(owned));
        Ok(())
    });
    running.wait(1);
    running.stop();
    let sent = headers
        .iter()
        .map(|(name, value)| (name.as_bytes(), *value));
    let seen = seen.lock().unwrap();
    assert!(
        sent.eq(seen
            .iter()
            .map(|(name, value)| (&name[..], value.as_deref())))
    );
}

#[test]
fn a_key_function_that_panics_ends_the_consumer_and_moves_nothing() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("order-1", "a"), ("order-2", "b")]);
    let buggy = key::with("buggy", |record| {
        assert_ne!(record.offset(), 1, "the key function's own bug");
        Ok(record.key().map(<[u8]>::to_vec))
    });
    let running = Running::start(builder(&broker).key(buggy), store.clone(), |_| Ok(()));
    let error = running.error();
    assert!(matches!(error, Error::Panicked), "{error}");
    assert_eq!(Operator::new(&broker).committed(0), None);
}
