//! What makes two lines the same: the whole line, or a part of it.

use std::{borrow::Cow, fmt};

use idempotent_consumer::key;

use crate::ages;

#[derive(Clone, Debug)]
pub(crate) enum Recipe {
    Line,
    /// The bytes between two delimiters, counted from 1. Quotes mean nothing.
    Field {
        number: usize,
        delimiter: Vec<u8>,
    },
    Json(key::Recipe),
    /// The key of a mark with a time, where that is not before another.
    Mark {
        not_before: i64,
    },
}

/// Why a line has no key.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum NoKey {
    #[error("it has no field {wanted}, only {there}")]
    FewFields { there: usize, wanted: usize },
    /// Lines whose key was left blank are not copies of each other.
    #[error("its key is empty")]
    Empty,
    #[error("its JSON has nothing there, or null")]
    Nothing,
    #[error("{0}")]
    Json(String),
    #[error("it is too old")]
    Old,
}

impl Recipe {
    /// The recipe that a word stands for.
    pub(crate) fn parse(word: &str, delimiter: &[u8]) -> Result<Self, String> {
        let unknown = || format!("--key takes line, field:NUMBER or json:POINTER, not '{word}'");
        match word.split_once(':') {
            None if word == "line" => Ok(Self::Line),
            Some(("field", number)) => match number.parse() {
                Ok(number) if number > 0 => Ok(Self::Field {
                    number,
                    delimiter: delimiter.to_vec(),
                }),
                _ => Err(format!(
                    "--key field:NUMBER counts from 1; '{number}' is no such number"
                )),
            },
            Some(("json", pointer)) => key::json_pointer(pointer)
                .map(Self::Json)
                .map_err(|error| format!("--key: {error}")),
            _ => Err(unknown()),
        }
    }

    /// Whether the key is the line itself.
    pub(crate) fn is_line(&self) -> bool {
        matches!(self, Self::Line)
    }

    /// The key of a line, given without its terminator. It holds no terminator either: a field
    /// is a part of the line, and JSON is written with its escapes.
    pub(crate) fn key<'a>(&self, content: &'a [u8]) -> Result<Cow<'a, [u8]>, NoKey> {
        match self {
            Self::Line => Ok(Cow::Borrowed(content)),
            Self::Field { number, delimiter } => {
                field(content, *number, delimiter).map(Cow::Borrowed)
            }
            Self::Json(pointer) => json(pointer, content).map(Cow::Owned),
            Self::Mark { not_before } => ages::key(content, *not_before)
                .map(Cow::Borrowed)
                .ok_or(NoKey::Old),
        }
    }
}

/// As it stands in a seen file and in a store's stamp.
impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line => f.write_str("line"),
            Self::Field { number, delimiter } => {
                write!(f, "field:{number} delimiter:'{}'", delimiter.escape_ascii())
            }
            Self::Json(pointer) => f.write_str(&pointer.name()),
            Self::Mark { .. } => f.write_str("mark"),
        }
    }
}

fn field<'a>(content: &'a [u8], number: usize, delimiter: &[u8]) -> Result<&'a [u8], NoKey> {
    let mut start = 0;
    let mut delimiters = memchr::memmem::find_iter(content, delimiter);
    for there in 1..number {
        start = match delimiters.next() {
            Some(found) => found + delimiter.len(),
            None => {
                return Err(NoKey::FewFields {
                    there,
                    wanted: number,
                });
            }
        };
    }
    let end = delimiters.next().unwrap_or(content.len());
    if start == end {
        return Err(NoKey::Empty);
    }
    Ok(&content[start..end])
}

fn json(pointer: &key::Recipe, content: &[u8]) -> Result<Vec<u8>, NoKey> {
    let found = pointer
        .identity_in_value(content)
        .map_err(|error| NoKey::Json(error.to_string()))?;
    // A letter, which keeps strings apart from numbers, and the text.
    match found.as_deref() {
        None | Some([]) => Err(NoKey::Nothing),
        Some([b's']) => Err(NoKey::Empty),
        Some([b's', text @ ..]) => serde_json::to_vec(&String::from_utf8_lossy(text))
            .map_err(|error| NoKey::Json(error.to_string())),
        Some([_, text @ ..]) => Ok(text.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(word: &str, delimiter: &str, line: &str) -> Result<String, NoKey> {
        let recipe = Recipe::parse(word, delimiter.as_bytes()).unwrap();
        let key = recipe.key(line.as_bytes())?;
        Ok(String::from_utf8(key.into_owned()).unwrap())
    }

    fn found(word: &str, delimiter: &str, line: &str) -> String {
        key(word, delimiter, line).unwrap()
    }

    #[test]
    fn a_field_lies_between_delimiters_and_quotes_mean_nothing() {
        assert_eq!(found("field:1", ",", "a,b"), "a");
        assert_eq!(found("field:2", ",", "a,b\r"), "b\r");
        assert_eq!(found("field:2", "||", "a|b||c|d||e"), "c|d");
        assert_eq!(found("field:2", ",", "\"a,b\",c"), "b\"");
        assert_eq!(found("field:1", ",", "no delimiter"), "no delimiter");
    }

    #[test]
    fn a_key_that_is_blank_or_not_there_is_none() {
        let few = |there, wanted| Err(NoKey::FewFields { there, wanted });
        assert_eq!(key("field:3", ",", "a,b"), few(2, 3));
        assert_eq!(key("field:2", ",", ""), few(1, 2));
        for line in ["a,,c", "a,"] {
            assert_eq!(key("field:2", ",", line), Err(NoKey::Empty));
        }
        assert_eq!(key("json:/id", "", r#"{"id":""}"#), Err(NoKey::Empty));
        for line in [r#"{"id":null}"#, r#"{"no":1}"#] {
            assert_eq!(key("json:/id", "", line), Err(NoKey::Nothing));
        }
        for line in ["", "no json", r#"{"id":[1]}"#, r#"{"id":1,"id":2}"#] {
            assert!(matches!(key("json:/id", "", line), Err(NoKey::Json(_))));
        }
    }

    #[test]
    fn json_keys_of_different_kinds_differ_and_one_string_is_one_however_it_is_written() {
        let of = |value: &str| found("json:/id", "", &format!("{{\"id\":{value}}}"));
        assert_eq!(of("\"a\""), of(r#""\u0061""#));
        assert_eq!(of("\"1\""), "\"1\"");
        assert_eq!(of("1"), "1");
        assert_eq!(of("12345678901234567890123"), "12345678901234567890123");
        assert_eq!(of(r#""a\nb\u0000c""#), r#""a\nb\u0000c""#);
        assert_eq!(of("true"), "true");
    }

    #[test]
    fn other_words_are_refused_and_named() {
        for word in [
            "", "id", "field", "field:", "field:0", "field:-1", "field:x", "json", "json:id",
        ] {
            let refused = Recipe::parse(word, b",").unwrap_err();
            assert!(refused.contains("--key"), "{word}: {refused}");
        }
    }
}
