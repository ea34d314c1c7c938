//! Values in JSON that parsers differ about, or that are deep, long or odd.

use super::*;

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
    let members: Vec<_> = (0..50_000).map(|n| format!("\"{n}\":0,")).collect();
    let members = members.concat();
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
