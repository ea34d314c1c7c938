//! Records of somebody who wants another's record to be dropped, or the consumer to end.

mod json;

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
