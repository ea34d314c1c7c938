//! Key recipes in a word.

use idempotent_consumer::key::{self, Recipe};

/// The recipe that a word stands for. What `dedup store show` prints is understood too.
pub(super) fn parse(word: &str) -> Result<Recipe, String> {
    let (kind, rest) = match word.split_once(':') {
        Some((kind, rest)) => (kind, Some(rest)),
        None => (word, None),
    };
    match (kind, rest) {
        ("record-key", None) => Ok(key::record_key()),
        ("value", None) => Ok(key::value()),
        ("cloudevents" | "cloud-events", None) => Ok(key::cloud_events()),
        ("header", Some("")) => Err("the header has no name".to_owned()),
        ("header", Some(name)) => Ok(key::header(name)),
        ("json" | "json-pointer", Some(pointer)) => {
            key::json_pointer(pointer).map_err(|error| error.to_string())
        }
        _ => Err(format!(
            "'{word}' is no key recipe; there are record-key, value, header:NAME, json:POINTER \
             and cloudevents"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_gives_the_recipe_that_is_named_like_it() {
        for (word, name) in [
            ("record-key", "record-key"),
            ("value", "value"),
            ("header:event-id", "header:event-id"),
            ("header:a:b", "header:a:b"),
            ("json:/order/id", "json-pointer:/order/id"),
            ("json:", "json-pointer:"),
            ("cloudevents", "cloud-events"),
        ] {
            assert_eq!(parse(word).map(|recipe| recipe.name()), Ok(name.to_owned()));
            // As it stands in a store's stamp.
            assert_eq!(parse(name).map(|recipe| recipe.name()), Ok(name.to_owned()));
        }
    }

    #[test]
    fn other_words_are_refused_and_named() {
        for word in ["", "key", "header", "header:", "json", "value:x", "json:id"] {
            assert!(parse(word).is_err(), "{word}");
        }
    }
}
