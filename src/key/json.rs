//! Identity from a place in a JSON value.
//!
//! Only the path is parsed, a level at a time, each level to borrowed raw text: an integer longer
//! than a float can hold keeps its digits, where a parsed number would merge it with a neighbour
//! and drop a record.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{InvalidPointer, NoIdentity};

/// An RFC 6901 pointer, taken apart.
#[derive(Clone, Debug)]
pub(super) struct Pointer {
    text: Arc<str>,
    tokens: Arc<[String]>,
}

/// A key of an object; borrowed where it holds no escape.
#[derive(Deserialize, PartialEq, Eq, Hash)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

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
            let bare = token.replace("~0", "").replace("~1", "");
            if bare.contains('~') {
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
        let not_json = |error: serde_json::Error| NoIdentity::NotJson(error.to_string());
        let mut here: &RawValue = serde_json::from_slice(json).map_err(not_json)?;
        for token in self.tokens.iter() {
            let next = match here.get().as_bytes().first() {
                Some(b'{') => {
                    let object: HashMap<Name<'_>, &RawValue> =
                        serde_json::from_str(here.get()).map_err(not_json)?;
                    object.get(&Name(Cow::Borrowed(token))).copied()
                }
                Some(b'[') => {
                    let array: Vec<&RawValue> =
                        serde_json::from_str(here.get()).map_err(not_json)?;
                    array_index(token).and_then(|index| array.get(index).copied())
                }
                _ => None,
            };
            match next {
                Some(next) => here = next,
                None => return Ok(None),
            }
        }
        self.scalar(here.get())
    }

    fn scalar(&self, raw: &str) -> Result<Option<Vec<u8>>, NoIdentity> {
        match raw.as_bytes().first() {
            Some(b'{' | b'[') => Err(NoIdentity::NotScalar(self.text.to_string())),
            Some(b'n') => Ok(None),
            Some(b'"') => {
                let content: String = serde_json::from_str(raw)
                    .map_err(|error| NoIdentity::NotJson(error.to_string()))?;
                Ok(Some(tagged(b's', &content)))
            }
            _ => Ok(Some(tagged(b'v', raw))),
        }
    }
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
