//! Identity from a place in a JSON value.
//!
//! Only the path is parsed, a level at a time, each level to borrowed raw text: an integer longer
//! than a float can hold keeps its digits, where a parsed number would merge it with a neighbour
//! and drop a record. What lies beside the path is passed over without being kept, and without
//! recursion, so that neither a long value nor a deep one costs memory.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{InvalidPointer, NoIdentity};

/// How much of a parser's message goes into an error, in characters.
const SAID_CHARS_MAX: usize = 200;

/// An RFC 6901 pointer, taken apart.
#[derive(Clone, Debug)]
pub(super) struct Pointer {
    text: Arc<str>,
    tokens: Arc<[String]>,
}

/// A key of an object; borrowed where it holds no escape.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Where a token leads inside an object or an array.
enum Found<'a> {
    Nowhere,
    Here(&'a RawValue),
    /// The name occurs again with another value. Readers of JSON differ in which they take, so
    /// that it is nobody's identity.
    Ambiguous,
}

/// Looks for one token among the members of a value.
struct Member<'t>(&'t str);

impl Pointer {
    pub(super) fn parse(pointer: &str) -> Result<Self, InvalidPointer> {
        let invalid = |reason| InvalidPointer {
            pointer: pointer.to_owned(),
            reason,
        };
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Err(invalid("it must be empty or start with '/'"));
        }
        let mut tokens = Vec::new();
        for token in pointer.split('/').skip(1) {
            let mut escapes = token.split('~').skip(1);
            if escapes.any(|rest| !rest.starts_with(['0', '1'])) {
                return Err(invalid(
                    "'~' must be followed by 0 (for '~') or 1 (for '/')",
                ));
            }
            tokens.push(token.replace("~1", "/").replace("~0", "~"));
        }
        Ok(Self {
            text: pointer.into(),
            tokens: tokens.into(),
        })
    }

    /// The identity at the pointer: a type letter and the text.
    pub(super) fn find(&self, json: &[u8]) -> Result<Option<Vec<u8>>, NoIdentity> {
        let not_json = |error| NoIdentity::NotJson(said(&error));
        let mut here: &RawValue = serde_json::from_slice(json).map_err(not_json)?;
        for token in self.tokens.iter() {
            match Member(token).of(here).map_err(not_json)? {
                Found::Here(next) => here = next,
                Found::Nowhere => return Ok(None),
                Found::Ambiguous => return Err(NoIdentity::AmbiguousJson(self.text.to_string())),
            }
        }
        self.scalar(here.get())
    }

    fn scalar(&self, raw: &str) -> Result<Option<Vec<u8>>, NoIdentity> {
        match raw.as_bytes().first() {
            Some(b'{' | b'[') => Err(NoIdentity::NotScalar(self.text.to_string())),
            Some(b'n') => Ok(None),
            Some(b'"') => {
                let content: String =
                    serde_json::from_str(raw).map_err(|error| NoIdentity::NotJson(said(&error)))?;
                Ok(Some(tagged(b's', &content)))
            }
            _ => Ok(Some(tagged(b'v', raw))),
        }
    }
}

impl Member<'_> {
    fn of<'a>(&self, value: &'a RawValue) -> serde_json::Result<Found<'a>> {
        let mut reader = serde_json::Deserializer::from_str(value.get());
        match value.get().as_bytes().first() {
            Some(b'{') => reader.deserialize_map(self),
            Some(b'[') => reader.deserialize_seq(self),
            _ => Ok(Found::Nowhere),
        }
    }
}

impl<'a> Visitor<'a> for &Member<'_> {
    type Value = Found<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Found<'a>, A::Error> {
        let mut found = Found::Nowhere;
        while let Some(Name(name)) = map.next_key()? {
            if name != self.0 {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value: &RawValue = map.next_value()?;
            found = match found {
                Found::Nowhere => Found::Here(value),
                Found::Here(first) if first.get() == value.get() => found,
                _ => Found::Ambiguous,
            };
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<Found<'a>, A::Error> {
        let mut found = Found::Nowhere;
        if let Some(index) = array_index(self.0) {
            for _ in 0..index {
                if seq.next_element::<IgnoredAny>()?.is_none() {
                    return Ok(Found::Nowhere);
                }
            }
            found = seq.next_element()?.map_or(found, Found::Here);
        }
        // The parser insists on having been led to the end.
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }
}

/// What the parser said, which may quote all of a string that it did not want.
pub(super) fn said(error: &serde_json::Error) -> String {
    error.to_string().chars().take(SAID_CHARS_MAX).collect()
}

/// The letter keeps the string `"1"` apart from the number `1`.
fn tagged(letter: u8, text: &str) -> Vec<u8> {
    let mut identity = Vec::with_capacity(text.len() + 1);
    identity.push(letter);
    identity.extend_from_slice(text.as_bytes());
    identity
}

/// RFC 6901 allows no sign and no leading zero, so that one element has one name.
fn array_index(token: &str) -> Option<usize> {
    let plain =
        token.bytes().all(|b| b.is_ascii_digit()) && (token == "0" || !token.starts_with('0'));
    if plain { token.parse().ok() } else { None }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}
