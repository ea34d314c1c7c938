mod hostile;

use super::*;
use crate::record::{Headers, OwnedHeaders, TopicPartition};

fn with_record<R>(
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[(&str, Option<&str>)],
    test: impl FnOnce(&Record<'_>) -> R,
) -> R {
    let headers = OwnedHeaders(
        headers
            .iter()
            .map(|(name, value)| {
                (
                    name.as_bytes().to_vec(),
                    value.map(|v| v.as_bytes().to_vec()),
                )
            })
            .collect(),
    );
    let headers = Headers::new(&headers);
    test(&Record {
        topic: "t",
        partition: 0,
        offset: 7,
        timestamp_ms: None,
        key,
        value,
        headers,
    })
}

fn print(recipe: &Recipe, topic: &str, record: &Record<'_>) -> Option<Fingerprint> {
    let hasher = Fingerprinter::new(
        &HashKey([7; 16]),
        "g",
        Scope::Topic,
        &TopicPartition::new(topic, record.partition),
    );
    recipe
        .identify(record)
        .unwrap()
        .map(|identity| hasher.fingerprint(&identity))
}

fn of_key(key: &[u8]) -> Option<Fingerprint> {
    with_record(Some(key), None, &[], |record| {
        print(&record_key(), "t", record)
    })
}

fn json(pointer: &str, value: &str) -> Result<Option<Identity<'static>>, NoIdentity> {
    let recipe = json_pointer(pointer).unwrap();
    with_record(None, Some(value.as_bytes()), &[], |record| {
        recipe.identify(record).map(|found| {
            found.map(|identity| match identity {
                Identity::Bytes(bytes) => Identity::Bytes(Cow::Owned(bytes.into_owned())),
                other => panic!("{other:?}"),
            })
        })
    })
}

fn text(identity: &str) -> Identity<'static> {
    Identity::Bytes(Cow::Owned(identity.as_bytes().to_vec()))
}

#[test]
fn an_empty_key_is_a_key_and_an_absent_one_is_missing() {
    assert!(of_key(b"").is_some());
    with_record(None, None, &[], |record| {
        assert_eq!(record_key().identify(record).unwrap(), None);
        assert_eq!(value().identify(record).unwrap(), None);
    });
}

// C063: pairs that collide under hashes people use.
#[test]
fn keys_that_collide_under_common_hashes_stay_apart() {
    let pairs = [
        ("plumless", "buckeroo"),
        ("costarring", "liquid"),
        ("8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"),
        ("hetairas", "mentioner"),
        ("Aa", "BB"),
    ];
    for (a, b) in pairs {
        assert_ne!(of_key(a.as_bytes()), of_key(b.as_bytes()), "{a} {b}");
    }
}

// C087
#[test]
fn long_keys_that_differ_in_their_last_byte_stay_apart() {
    let mut long = vec![b'k'; 900_000];
    let first = of_key(&long);
    *long.last_mut().unwrap() = b'l';
    assert_ne!(first, of_key(&long));
}

// C062
#[test]
fn parts_are_never_joined_into_the_same_string() {
    let key = |bytes: &'static [u8]| {
        with_record(Some(bytes), None, &[], |r| print(&record_key(), "a", r))
    };
    let other = |bytes: &'static [u8]| {
        with_record(Some(bytes), None, &[], |r| print(&record_key(), "a-b", r))
    };
    assert_ne!(key(b"b-c"), other(b"c"));
    let place = |partition, offset| Identity::Place(partition, offset);
    let hasher = Fingerprinter::new(
        &HashKey([7; 16]),
        "g",
        Scope::Topic,
        &TopicPartition::new("t", 0),
    );
    assert_ne!(
        hasher.fingerprint(&place(1, 11)),
        hasher.fingerprint(&place(11, 1))
    );
}

// C020
#[test]
fn a_header_that_occurs_with_two_values_is_nobodys_identity() {
    let recipe = header("id");
    let found = |headers: &[(&str, Option<&str>)]| {
        with_record(None, None, headers, |record| {
            recipe
                .identify(record)
                .map(|found| found.map(|_| print(&recipe, "t", record).unwrap()))
        })
    };
    assert!(matches!(
        found(&[("id", Some("a")), ("id", Some("b"))]),
        Err(NoIdentity::AmbiguousHeader(name)) if name == "id"
    ));
    let b = found(&[("id", Some("b"))]).unwrap();
    assert_eq!(found(&[("id", Some("b")), ("id", Some("b"))]).unwrap(), b);
    assert_eq!(
        found(&[("ID", Some("a")), ("id", None), ("id", Some("b"))]).unwrap(),
        b
    );
    assert_eq!(found(&[("id", None)]).unwrap(), None);
    assert!(found(&[("id", Some(""))]).unwrap().is_some());
}

#[test]
fn json_scalars_keep_type_and_digits() {
    let doc = r#"{"a":{"b/c":["x",12345678901234567890123,1.0,"1",true,null]},"":"e"}"#;
    let at = |pointer: &str| json(pointer, doc).unwrap();
    assert_eq!(at("/a/b~1c/0"), Some(text("sx")));
    assert_eq!(at("/a/b~1c/1"), Some(text("v12345678901234567890123")));
    assert_eq!(at("/a/b~1c/2"), Some(text("v1.0")));
    assert_eq!(at("/a/b~1c/3"), Some(text("s1")));
    assert_eq!(at("/a/b~1c/4"), Some(text("vtrue")));
    assert_eq!(at("/"), Some(text("se")));
    for nowhere in [
        "/a/b~1c/5",
        "/a/b~1c/6",
        "/a/b~1c/00",
        "/a/b~1c/-",
        "/x",
        "/a/b~1c/0/y",
    ] {
        assert_eq!(at(nowhere), None, "{nowhere}");
    }
    assert!(matches!(json("/a", doc), Err(NoIdentity::NotScalar(_))));
    assert!(matches!(json("/a", "{"), Err(NoIdentity::NotJson(_))));
    assert!(matches!(
        json("/a", r#"{"a":1} x"#),
        Err(NoIdentity::NotJson(_))
    ));
    assert_eq!(
        json("/a", r#"{"\u0061":"\u0062"}"#).unwrap(),
        Some(text("sb"))
    );
}

#[test]
fn deep_json_is_an_error_and_no_overflow() {
    let deep = "[".repeat(200_000);
    assert!(matches!(json("/0", &deep), Err(NoIdentity::NotJson(_))));
    let closed = format!("{deep}{}", "]".repeat(200_000));
    // Whatever the parser's limit says, it says it in an answer.
    let _ = json("/0/0", &closed);
}

#[test]
fn a_pointer_that_is_none_is_refused_by_name() {
    for bad in ["a", "/~", "/~2", "a/b"] {
        let error = json_pointer(bad).unwrap_err().to_string();
        assert!(error.contains(bad), "{error}");
    }
}

#[test]
fn a_cloud_event_is_the_same_in_binary_and_structured_mode() {
    let recipe = cloud_events();
    let binary = with_record(
        None,
        None,
        &[("ce_id", Some("1")), ("ce_source", Some("/s"))],
        |record| print(&recipe, "t", record),
    );
    let structured = |doc: &str| {
        with_record(None, Some(doc.as_bytes()), &[], |record| {
            print(&recipe, "t", record)
        })
    };
    assert!(binary.is_some());
    assert_eq!(
        structured(r#"{"specversion":"1.0","id":"1","source":"/s"}"#),
        binary
    );
    assert_ne!(structured(r#"{"id":"1","source":"/t"}"#), binary);
    assert_eq!(structured(r#"{"id":"1"}"#), None);
    with_record(None, Some(b"{}"), &[("ce_id", Some("1"))], |record| {
        assert_eq!(recipe.identify(record).unwrap(), None);
    });
}

#[test]
fn a_token_is_stable_and_depends_on_group_topic_and_key() {
    let token = |group: &str, topic: &str, key: &'static [u8], secret: u8| {
        let at = TopicPartition::new(topic, 0);
        Fingerprinter::new(&HashKey([secret; 16]), group, Scope::Topic, &at)
            .token(&Identity::Bytes(Cow::Borrowed(key)))
    };
    let first = token("g", "t", b"k", 1);
    assert_eq!(first.len(), 32);
    // Not under the store's secret: a lost store must not change what the outside was told.
    assert_eq!(first, token("g", "t", b"k", 2));
    // Pinned: a service's stored tokens must mean the same after an upgrade of this crate.
    assert_eq!(first, "ae7501c0ed143ee9b59bca0b6ba29bf2");
    for other in [
        token("h", "t", b"k", 1),
        token("g", "u", b"k", 1),
        token("g", "t", b"l", 1),
    ] {
        assert_ne!(first, other);
    }
}
