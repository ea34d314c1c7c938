//! Records of somebody who wants another's record to be dropped, or the consumer to end.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// Pairs that collide under hashes people use: CRC-32, FNV-1a 32 and 64, DJB2, Java's.
const COLLISIONS: [[&str; 2]; 5] = [
    ["plumless", "buckeroo"],
    ["costarring", "liquid"],
    ["8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"],
    ["hetairas", "mentioner"],
    ["Aa", "BB"],
];

/// A header as it may come: neither its name nor its value need be text.
type Bytes<'a> = (&'a [u8], Option<&'a [u8]>);

fn identify(
    recipe: &Recipe,
    value: Option<&[u8]>,
    headers: &[Bytes<'_>],
) -> Result<Option<Fingerprint>, NoIdentity> {
    let owned = headers
        .iter()
        .map(|(name, value)| (name.to_vec(), value.map(<[u8]>::to_vec)));
    let headers = OwnedHeaders(owned.collect());
    let record = Record {
        topic: "t",
        partition: 0,
        offset: 7,
        timestamp_ms: None,
        key: None,
        value,
        headers: Headers::new(&headers),
    };
    let at = TopicPartition::new("t", 0);
    let hasher = Fingerprinter::new(&HashKey([7; 16]), "g", Scope::Topic, &at);
    let found = recipe.identify(&record)?;
    Ok(found.map(|identity| hasher.fingerprint(&identity)))
}

fn at(pointer: &str, value: impl AsRef<[u8]>) -> Result<Option<Fingerprint>, NoIdentity> {
    identify(&json_pointer(pointer).unwrap(), Some(value.as_ref()), &[])
}

/// Every one has an identity, and no two have the same.
#[track_caller]
fn all_apart(found: impl IntoIterator<Item = Result<Option<Fingerprint>, NoIdentity>>) {
    let mut prints = HashSet::new();
    for (place, found) in found.into_iter().enumerate() {
        let print = found.unwrap().unwrap_or_else(|| panic!("no {place}: none"));
        assert!(prints.insert(print), "no {place} is another's copy");
    }
}

// C063
#[test]
fn colliding_strings_stay_apart_in_every_recipe() {
    let words = || COLLISIONS.iter().flatten();
    let in_value = |recipe: Recipe, form: fn(&str) -> String| {
        all_apart(words().map(|word| identify(&recipe, Some(form(word).as_bytes()), &[])));
    };
    in_value(value(), str::to_owned);
    in_value(json_pointer("/id").unwrap(), |word| {
        format!("{{\"id\":\"{word}\"}}")
    });
    in_value(cloud_events(), |word| {
        format!("{{\"source\":\"s\",\"id\":\"{word}\"}}")
    });
    in_value(
        with("words", |record| Ok(record.value().map(<[u8]>::to_vec))),
        str::to_owned,
    );
    let by_header = header("id");
    all_apart(words().map(|word| identify(&by_header, None, &[(b"id", Some(word.as_bytes()))])));
    let hasher = Fingerprinter::new(
        &HashKey([7; 16]),
        "g",
        Scope::Topic,
        &TopicPartition::new("t", 0),
    );
    let token =
        |word: &&str| hasher.token(&Identity::Bytes(Cow::Owned(word.as_bytes().to_owned())));
    let tokens: HashSet<_> = words().map(token).collect();
    assert_eq!(tokens.len(), 10);
}

proptest! {
    // C062
    #[test]
    fn different_bytes_are_different_keys_wherever_parts_are_cut(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        (one, other) in (0_usize..40, 0_usize..40),
    ) {
        let (one, other) = (one.min(bytes.len()), other.min(bytes.len()));
        let event = |cut: usize| {
            let (source, id) = bytes.split_at(cut);
            let headers: [Bytes<'_>; 2] = [(b"ce_source", Some(source)), (b"ce_id", Some(id))];
            identify(&cloud_events(), None, &headers).unwrap()
        };
        let inside = |cut| 0 < cut && cut < bytes.len();
        prop_assert_eq!(event(one).is_some(), inside(one));
        prop_assert_eq!(event(one) == event(other), one == other || !inside(one) && !inside(other));
        let whole = identify(&value(), Some(&bytes), &[]).unwrap();
        prop_assert_ne!(whole, event(one));
        let shorter = identify(&value(), Some(&bytes[..one]), &[]).unwrap();
        prop_assert_eq!(whole == shorter, one == bytes.len());
    }

    #[test]
    fn no_bytes_whatever_end_a_recipe(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for recipe in [cloud_events(), json_pointer("/0/a~1").unwrap(), json_pointer("").unwrap()] {
            let _answer = identify(&recipe, Some(&bytes), &[(&bytes, Some(&bytes))]);
        }
    }

    #[test]
    fn no_text_whatever_ends_a_recipe(text in r#"[\[\]{}",:0-9eE.\\u~/a-]{0,60}"#) {
        let _answer = at("/0/a", &text);
        if let Ok(recipe) = json_pointer(&text) {
            let _answer = identify(&recipe, Some(text.as_bytes()), &[]);
        }
    }
}

// C087
#[test]
fn keys_of_every_length_count_with_every_byte() {
    let long = vec![0_u8; 900_000];
    let lengths = [
        0, 1, 2, 15, 16, 17, 255, 256, 65_535, 65_536, 899_999, 900_000,
    ];
    let mut last = long.clone();
    last[899_999] = 1;
    let keys = lengths.iter().map(|len| &long[..*len]).chain([&last[..]]);
    all_apart(keys.map(|key| identify(&value(), Some(key), &[])));
}

#[test]
fn what_is_no_text_is_compared_as_bytes() {
    let values: [&[u8]; 6] = [
        b"\xff",
        b"\xfe",
        b"\xef\xbf\xbd",
        b"\xc3\x28",
        b"\0",
        b"a\0b",
    ];
    all_apart(values.map(|bytes| identify(&header("id"), None, &[(b"id", Some(bytes))])));
    // A name that is no text is another name, also where it would be shown as this one.
    let recipe = header("\u{fffd}");
    let found = identify(&recipe, None, &[(b"\xff", Some(b"a"))]).unwrap();
    assert_eq!(found, None);
    assert!(matches!(
        at("/id", b"{\"id\":\"\xff\"}"),
        Err(NoIdentity::NotJson(_))
    ));
}

// C020
#[test]
fn ten_thousand_headers_are_looked_through_to_the_last() {
    let name = |n: usize| format!("h{n}").into_bytes();
    let names: Vec<_> = (0..10_000).map(name).collect();
    let mut headers: Vec<Bytes<'_>> = names.iter().map(|name| (&name[..], None)).collect();
    let recipe = header("id");
    assert_eq!(identify(&recipe, None, &headers).unwrap(), None);
    headers.push((b"id", Some(b"1")));
    let one = identify(&recipe, None, &headers).unwrap();
    assert_eq!(one, identify(&recipe, None, &headers[10_000..]).unwrap());
    headers[0] = (b"id", Some(b"2"));
    let error = identify(&recipe, None, &headers).unwrap_err();
    assert!(matches!(error, NoIdentity::AmbiguousHeader(_)), "{error}");
}

#[test]
fn a_value_of_a_hundred_thousand_levels_is_read_to_its_end_without_recursion() {
    let deep = format!("{}7{}", "[".repeat(100_000), "]".repeat(100_000));
    let objects = format!("{}7{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    for deep in [deep, objects] {
        let beside = format!("{{\"deep\":{deep},\"id\":7,\"more\":{deep}}}");
        assert_eq!(at("/id", &beside).unwrap(), at("", "7").unwrap());
        assert!(matches!(
            at("/deep", &beside),
            Err(NoIdentity::NotScalar(_))
        ));
        assert_eq!(at("/deep/0/0/x", &beside).unwrap(), None);
        let event = format!("{{\"data\":{deep},\"source\":\"s\",\"id\":\"1\"}}");
        assert!(
            identify(&cloud_events(), Some(event.as_bytes()), &[])
                .unwrap()
                .is_some()
        );
        let event = format!("{{\"id\":{deep},\"source\":\"s\"}}");
        assert!(identify(&cloud_events(), Some(event.as_bytes()), &[]).is_err());
    }
}

#[test]
fn long_values_are_looked_through_to_the_last_element() {
    let array = format!("[{}1]", "0,".repeat(500_000));
    assert_eq!(at("/500000", &array).unwrap(), at("", "1").unwrap());
    for nowhere in [
        "/500001",
        "/99999999999999999999999",
        "/-1",
        "/+1",
        "/ 1",
        "/",
    ] {
        assert_eq!(at(nowhere, &array).unwrap(), None, "{nowhere}");
    }
    let members: String = (0..50_000).map(|n| format!("\"{n}\":0,")).collect();
    let object = format!("{{{members}\"id\":1}}");
    assert_eq!(at("/id", &object).unwrap(), at("", "1").unwrap());
    let long = "x".repeat(900_000);
    let strings = ["y", "z"].map(|last| at("/id", format!("{{\"id\":\"{long}{last}\"}}")));
    all_apart(strings);
}

#[test]
fn a_name_that_leads_to_two_values_is_nobodys_identity() {
    for twice in [
        r#"{"a":{"id":1,"id":2}}"#,
        r#"{"a":{"id":1,"\u0069d":2}}"#,
        r#"{"a":{"id":null,"id":2}}"#,
        r#"{"a":{"id":1,"id":2,"id":1}}"#,
        r#"{"a":{"id":1},"a":{"id":2}}"#,
        r#"{"a":{"id":1},"a":{}}"#,
    ] {
        let error = at("/a/id", twice).unwrap_err();
        assert!(
            matches!(error, NoIdentity::AmbiguousJson(_)),
            "{twice}: {error}"
        );
        assert!(error.to_string().contains("/a/id"), "{error}");
    }
    let one = at("", "1").unwrap();
    for once in [
        r#"{"a":{"id":1,"id":1}}"#,
        r#"{"b":1,"b":2,"a":{"c":1,"c":2,"id":1}}"#,
    ] {
        assert_eq!(at("/a/id", once).unwrap(), one, "{once}");
    }
}

#[test]
fn a_number_counts_as_it_is_written() {
    let digits = format!("1{}", "0".repeat(100_000));
    let numbers = [
        "0",
        "-0",
        "0.0",
        "0e0",
        "1",
        "1.0",
        "1.00",
        "10e-1",
        "1E0",
        "1e0",
        "1e400",
        "1E400",
        "18446744073709551615",
        "18446744073709551616",
        "1e-7",
        "\"1\"",
        "true",
        "\"true\"",
        &digits,
        "\"\"",
        "\"null\"",
    ];
    all_apart(numbers.map(|number| at("/id", format!("{{\"id\": {number} }}"))));
    assert_eq!(at("", " 1\n").unwrap(), at("", "1").unwrap());
    for none in [
        "01",
        "+1",
        ".5",
        "1.",
        "1e",
        "0x10",
        "NaN",
        "Infinity",
        "1_000",
        "--1",
        "\u{feff}1",
        "",
    ] {
        let error = at("/id", format!("{{\"id\":{none}}}")).unwrap_err();
        assert!(matches!(error, NoIdentity::NotJson(_)), "{none}: {error}");
    }
}

#[test]
fn a_string_counts_by_its_content_and_no_further() {
    let of = |text: &str| at("/id", format!("{{\"id\":\"{text}\"}}"));
    for (one, other) in [
        ("a", r"\u0061"),
        ("/", r"\/"),
        ("\u{1f600}", r"\ud83d\ude00"),
    ] {
        assert_eq!(of(one).unwrap(), of(other).unwrap(), "{one} {other}");
    }
    // Composed and decomposed, a look-alike, what is cut elsewhere.
    all_apart(
        [
            "\u{e9}",
            "e\u{301}",
            "a",
            "\u{430}",
            "A",
            "a ",
            r"a\u0000",
            r"a\u0000b",
        ]
        .map(of),
    );
    for half in [
        r"\ud800",
        r"\udc00",
        r"\ud800x",
        r"\ud800\ud800",
        r"\x",
        r"\u12",
    ] {
        assert!(matches!(of(half), Err(NoIdentity::NotJson(_))), "{half}");
    }
}

#[test]
fn a_pointers_escapes_are_taken_one_by_one() {
    let doc = r#"{"~":1,"/":2,"~1":3,"/0":4,"~~":5,"a~1b":6,"":{"":7}}"#;
    for (pointer, number) in [
        ("/~0", "1"),
        ("/~1", "2"),
        ("/~01", "3"),
        ("/~10", "4"),
        ("/~0~0", "5"),
        ("/a~01b", "6"),
        ("//", "7"),
    ] {
        assert_eq!(
            at(pointer, doc).unwrap(),
            at("", number).unwrap(),
            "{pointer}"
        );
    }
    for bad in [
        "/~", "/~~01", "/~~0", "/a~", "/~2/b", "/a/~/b", "#/a", " /a",
    ] {
        let error = json_pointer(bad).unwrap_err().to_string();
        assert!(error.contains(bad), "{error}");
    }
}

#[test]
fn an_event_with_odd_attributes_is_refused_or_missing_and_never_anothers_copy() {
    let structured = |doc: &str| identify(&cloud_events(), Some(doc.as_bytes()), &[]);
    for missing in [
        "{}",
        r#"{"id":"1"}"#,
        r#"{"id":"1","source":null}"#,
        r#"{"id":"","source":"s"}"#,
        r#"{"id":"1","source":""}"#,
        r#"{"ID":"1","Source":"s"}"#,
    ] {
        assert_eq!(structured(missing).unwrap(), None, "{missing}");
    }
    let long = format!("\"{}\"", "x".repeat(900_000));
    for none in [
        r#"{"id":1,"source":"s"}"#,
        r#"{"id":"1","id":"1","source":"s"}"#,
        r#"{"id":["1"],"source":"s"}"#,
        r#"{"id":"1","source":{}}"#,
        "null",
        "1",
        &long,
        &format!("{{\"id\":1,\"source\":{long}}}"),
    ] {
        let error = structured(none).unwrap_err();
        assert!(matches!(error, NoIdentity::NotAnEvent(_)), "{error}");
        assert!(
            error.to_string().len() < 300,
            "{} bytes",
            error.to_string().len()
        );
    }
    let binary = |headers: &[Bytes<'_>]| {
        let whole: &[u8] = br#"{"id":"1","source":"s"}"#;
        identify(&cloud_events(), Some(whole), headers)
    };
    let (source, id): (Bytes<'_>, Bytes<'_>) = ((b"ce_source", Some(b"s")), (b"ce_id", Some(b"2")));
    // One of the two, or an empty one: no event in binary mode, and the value is not asked.
    for missing in [&[source][..], &[id], &[source, (b"ce_id", Some(b""))]] {
        assert_eq!(binary(missing).unwrap(), None, "{missing:?}");
    }
    let null: [Bytes<'_>; 2] = [(b"ce_source", None), (b"ce_id", None)];
    assert_eq!(binary(&null).unwrap(), binary(&[]).unwrap());
    let twice = binary(&[source, id, (b"ce_id", Some(b"3"))]).unwrap_err();
    assert!(matches!(twice, NoIdentity::AmbiguousHeader(_)), "{twice}");
    let upper: [Bytes<'_>; 2] = [(b"CE_source", Some(b"s")), (b"CE_id", Some(b"2"))];
    assert_eq!(
        binary(&upper).unwrap(),
        binary(&[]).unwrap(),
        "other headers"
    );
}
