//! Records of somebody who wants another's record to be dropped, or the consumer to end.

use std::sync::{Arc, Mutex};

use idempotent_consumer::key::{self, MissingKey, Recipe};
use idempotent_consumer::testkit::{EmbeddedBroker, Produced};
use idempotent_consumer::{Counts, Error};

use crate::raw::{RawRecord, produce_damaged, produce_raw};
use crate::scripted::Scripted;
use crate::support::*;

/// Handles `records` whatever their identity is, and gives the offsets that took effect.
fn pass_through(recipe: Recipe, records: &[Produced<'_>]) -> (Vec<i64>, Counts) {
    let (broker, store) = (broker(1), Scripted::new());
    broker.produce(TOPIC, records).unwrap();
    let end = i64::try_from(records.len()).unwrap();
    let lenient = builder(&broker)
        .key(recipe)
        .on_missing_key(MissingKey::PassThrough);
    let running = Running::start(lenient, store.clone(), |_| Ok(()));
    running.wait_for("the last record", || store.head(0) == Some(end));
    let effects = running.effects.list();
    let offset = |effect: &String| effect.split(':').nth(1).unwrap().parse().unwrap();
    let offsets = effects.iter().map(offset).collect();
    (offsets, running.stop().counts)
}

fn valued(value: &[u8]) -> Produced<'_> {
    Produced {
        value: Some(value),
        ..Produced::default()
    }
}

// C063
#[test]
fn keys_that_collide_under_common_hashes_take_effect_each() {
    let keys = [
        "plumless",
        "buckeroo",
        "costarring",
        "liquid",
        "8yn0iYCKYHlIj4-BwPqk",
        "GReLUrM4wMqfg9yzV3KQ",
        "hetairas",
        "mentioner",
        "Aa",
        "BB",
    ];
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    // With one value: nothing but the key tells them apart.
    let records = keys.map(|key| (key, "v"));
    produce(&broker, 0, &records);
    let (effects, _) = consume(builder(&broker), sled(dir.path()), 10);
    assert_eq!(effects.len(), 10);
    // As others read it back from the disk.
    produce(&broker, 0, &records);
    produce(&broker, 0, &[("end", "v")]);
    let (effects, report) = consume(builder(&broker), sled(dir.path()), 1);
    assert_eq!(effects, ["0:20:end=v"]);
    assert_eq!(report.counts.duplicate, 10);
}

/// Each record's headers as the handler saw them.
type Seen = Vec<Vec<(Vec<u8>, Option<Vec<u8>>)>>;

/// Consumes until `count` records were handled and gives their headers.
fn headers_seen(broker: &EmbeddedBroker, count: usize) -> Seen {
    let seen = Arc::new(Mutex::new(Seen::new()));
    let noted = Arc::clone(&seen);
    let running = Running::start(builder(broker), Scripted::new(), move |delivery| {
        let headers = delivery.headers();
        let owned = headers
            .iter()
            .map(|(name, value)| (name.to_vec(), value.map(<[u8]>::to_vec)));
        noted.lock().unwrap().push(owned.collect());
        // A log line of a user's, in which it is all shown.
        assert!(!format!("{delivery:?}").is_empty());
        Ok(())
    });
    running.wait(count);
    running.stop();
    std::mem::take(&mut *seen.lock().unwrap())
}

#[test]
fn keys_and_headers_that_are_no_text_arrive_byte_for_byte_and_stay_apart() {
    let broker = broker(1);
    let long = vec![0xfe; 100_000];
    let headers: [(&[u8], Option<&[u8]>); 6] = [
        (b"\xff", Some(b"\xfe\xfd")),
        (b"\xc3\x28", None),
        (b"", Some(b"")),
        (b"\xff", Some(b"\0\0")),
        (b"\xe2\x80\xae", Some(b"\x1b[2J")),
        (&long, Some(&long)),
    ];
    // The first two, and what a replacement character in their place would be.
    let keys: [&[u8]; 5] = [b"\xff", b"\xfe", b"\xef\xbf\xbd", b"\0", b""];
    let of_key = |key| RawRecord {
        key: Some(key),
        value: Some(b"\xff"),
        headers: &headers,
        ..RawRecord::default()
    };
    let records = keys.map(of_key);
    produce_raw(&broker, &records);
    produce_raw(&broker, &records);
    produce(&broker, 0, &[("end", "v")]);
    let seen = headers_seen(&broker, 6);
    assert_eq!(seen.len(), 6);
    for of_record in &seen[..5] {
        let came = of_record
            .iter()
            .map(|(name, value)| (&name[..], value.as_deref()));
        assert!(came.eq(headers), "{of_record:?}");
    }
}

// C020
#[test]
fn headers_that_cannot_be_read_are_no_identity_and_no_record_is_lost() {
    let (broker, store) = (broker(1), Scripted::new());
    let torn = RawRecord {
        key: Some(b"k"),
        headers: &[(b"id", Some(b"1"))],
        missing_headers: 3,
        ..RawRecord::default()
    };
    produce_raw(&broker, &[torn]);
    let by_header = builder(&broker).key(key::header("id"));
    let error = Running::start(by_header, store.clone(), |_| Ok(())).error();
    assert!(matches!(error, Error::MissingKey { .. }), "{error}");
    assert!(error.to_string().contains("orders[0]@0"), "{error}");
    assert_eq!(store.head(0), None);
    assert_eq!(Operator::new(&broker).committed(0), None);
}

// C017
#[test]
fn a_damaged_batch_ends_the_consumer_by_name_and_nothing_behind_it_is_handled() {
    let (broker, store) = (broker(1), Scripted::new());
    produce(&broker, 0, &[("before", "a")]);
    let record = RawRecord {
        key: Some(b"damaged"),
        value: Some(b"v"),
        ..RawRecord::default()
    };
    produce_damaged(&broker, &[record]);
    produce(&broker, 0, &[("behind", "b")]);
    let running = Running::start(builder(&broker), store.clone(), |_| Ok(()));
    let effects = running.effects.clone();
    let error = running.error().to_string();
    assert!(error.contains("orders[0] failed at offset 1"), "{error}");
    assert_eq!(effects.list(), ["0:0:before=a"]);
    assert_eq!(store.head(0), Some(1));
    assert_eq!(Operator::new(&broker).committed(0), Some(1));
}

#[test]
fn an_identity_behind_ten_thousand_headers_is_found() {
    let names: Vec<_> = (0..10_000).map(|n| format!("h{n}")).collect();
    let filled = |id: &'static [u8], value: Option<&'static [u8]>| {
        let others = names.iter().map(move |name| (name.as_str(), value));
        others.chain([("id", Some(id))]).collect::<Vec<_>>()
    };
    let (a, again, b) = (
        filled(b"a", None),
        filled(b"a", Some(b"x")),
        filled(b"b", None),
    );
    let with = |headers| Produced {
        value: Some(b"v"),
        headers,
        ..Produced::default()
    };
    let records = [with(&a), with(&again), with(&b), with(&a)];
    let (handled, counts) = pass_through(key::header("id"), &records);
    assert_eq!(handled, [0, 2]);
    assert_eq!((counts.duplicate, counts.missing_key), (2, 0));
}

#[test]
fn values_that_no_pointer_can_be_sure_of_suppress_nothing() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let beside = format!("{{\"deep\":{deep},\"id\":\"order-1\"}}");
    let on_path = format!("{{\"id\":{deep}}}");
    let unclosed = "{\"id\":".repeat(100_000);
    let members: Vec<_> = (0..60_000).map(|n| format!("\"k{n}\":{n},")).collect();
    let members = members.concat();
    let wide = format!("{{{members}\"id\":\"order-2\"}}");
    let records = [
        valued(beside.as_bytes()),
        valued(on_path.as_bytes()),
        valued(on_path.as_bytes()),
        valued(unclosed.as_bytes()),
        valued(wide.as_bytes()),
        valued(br#"{"id":"order-1","id":"order-2"}"#),
        valued(br#"{"id":"order-1","id":"order-2"}"#),
        valued(b"{\"id\":\"order-1\xff\"}"),
        valued(br#"{"id":"\ud800"}"#),
        valued(b"\xef\xbb\xbf{\"id\":\"order-1\"}"),
        // Two copies, the only ones that are.
        valued(beside.as_bytes()),
        valued(wide.as_bytes()),
    ];
    let (handled, counts) = pass_through(key::json_pointer("/id").unwrap(), &records);
    assert_eq!(handled, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(
        (counts.new, counts.duplicate, counts.missing_key),
        (2, 2, 8)
    );
}

#[test]
fn events_whose_attributes_are_not_what_they_must_be_suppress_nothing() {
    let headers = |source: &'static [u8], id: &'static [u8]| {
        [("ce_source", Some(source)), ("ce_id", Some(id))]
    };
    let (no_id, no_source) = (headers(b"s", b""), headers(b"", b"1"));
    let (shifted, shifted_back) = (headers(b"s1", b"2"), headers(b"s", b"12"));
    let only_id = [("ce_id", Some(&b"1"[..]))];
    let binary = |headers| Produced {
        value: Some(b"v"),
        headers,
        ..Produced::default()
    };
    let records = [
        binary(&no_id),
        binary(&no_id),
        binary(&no_source),
        binary(&no_source),
        binary(&only_id),
        binary(&only_id),
        binary(&shifted),
        binary(&shifted_back),
        valued(br#"{"source":"s","id":""}"#),
        valued(br#"{"source":"s","id":""}"#),
        valued(br#"{"source":"s","id":1}"#),
        valued(br#"{"source":"s","id":1}"#),
        valued(br#"{"source":"s","id":"1","id":"2"}"#),
        valued(br#"{"source":"s","id":"1","id":"2"}"#),
    ];
    let (handled, counts) = pass_through(key::cloud_events(), &records);
    assert_eq!(handled, (0..14).collect::<Vec<_>>());
    assert_eq!((counts.new, counts.missing_key), (2, 12));
}
