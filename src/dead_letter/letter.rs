//! The headers of a letter.

use std::borrow::Cow;

use super::cause::Cause;
use super::names::{
    ATTEMPT, EXCEPTION, EXCEPTION_MESSAGE, ORIGINAL_GROUP, ORIGINAL_OFFSET, ORIGINAL_PARTITION,
    ORIGINAL_TIMESTAMP, ORIGINAL_TOPIC, is_failure, is_original,
};
use super::origin::origin;
use crate::record::Record;

/// How much of an error's text goes into a letter.
const ERROR_BYTES_MAX: usize = 8 << 10;

/// A name, as the client writes it, and a value or null.
pub(super) type Header<'a> = (Cow<'a, str>, Option<Cow<'a, [u8]>>);

/// The record's headers, and behind them where it was read and why it was given up.
pub(super) fn headers<'a>(
    record: &Record<'a>,
    cause: &Cause<'a>,
    group: &'a str,
) -> Vec<Header<'a>> {
    // It was a letter before: the place where it was read first is the one that it is known by.
    let keeps_origin = origin(record).is_some();
    let kept = |name: &[u8]| !is_failure(name) && (keeps_origin || !is_original(name));
    let mut headers: Vec<Header<'a>> = record
        .headers()
        .iter()
        .filter(|(name, _)| kept(name))
        .map(|(name, value)| (String::from_utf8_lossy(name), value.map(Cow::Borrowed)))
        .collect();
    let mut add = |name: &'static str, value: Cow<'a, [u8]>| {
        headers.push((Cow::Borrowed(name), Some(value)));
    };
    if !keeps_origin {
        let timestamp = record.timestamp_ms().unwrap_or(-1);
        add(ORIGINAL_TOPIC, text(record.topic()));
        add(ORIGINAL_PARTITION, bytes(record.partition().to_be_bytes()));
        add(ORIGINAL_OFFSET, bytes(record.offset().to_be_bytes()));
        add(ORIGINAL_TIMESTAMP, bytes(timestamp.to_be_bytes()));
        add(ORIGINAL_GROUP, text(group));
    }
    add(EXCEPTION, text(cause.reason.name()));
    add(EXCEPTION_MESSAGE, text(cut(cause.error)));
    // Java reads it as a signed number.
    let attempts = i32::try_from(cause.attempts).unwrap_or(i32::MAX);
    add(ATTEMPT, bytes(attempts.to_be_bytes()));
    headers
}

fn text(value: &str) -> Cow<'_, [u8]> {
    Cow::Borrowed(value.as_bytes())
}

fn bytes<'a, const N: usize>(value: [u8; N]) -> Cow<'a, [u8]> {
    Cow::Owned(value.to_vec())
}

/// The start of a text, up to a whole character.
fn cut(text: &str) -> &str {
    let end = (0..=text.len().min(ERROR_BYTES_MAX))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead_letter::Reason;
    use crate::dead_letter::origin::Origin;
    use crate::record::{Headers, OwnedHeaders};

    const CAUSE: Cause<'_> = Cause {
        reason: Reason::Rejected,
        error: "no such account",
        attempts: 3,
    };

    fn record(list: &OwnedHeaders) -> Record<'_> {
        Record {
            topic: "orders",
            partition: 2,
            offset: 41,
            timestamp_ms: Some(1_700_000_000_123),
            key: Some(b"k"),
            value: None,
            headers: Headers::new(list),
        }
    }

    fn list(headers: &[(&[u8], Option<&[u8]>)]) -> OwnedHeaders {
        let owned = |(name, value): &(&[u8], Option<&[u8]>)| (name.to_vec(), value.map(Vec::from));
        OwnedHeaders(headers.iter().map(owned).collect())
    }

    /// The letter's headers as a consumer of it would have them.
    fn written(given: &OwnedHeaders, cause: &Cause<'_>) -> OwnedHeaders {
        let record = record(given);
        let owned = |(name, value): &Header<'_>| {
            let value = value.as_ref().map(|value| value.to_vec());
            (name.as_bytes().to_vec(), value)
        };
        let headers = headers(&record, cause, "billing");
        OwnedHeaders(headers.iter().map(owned).collect())
    }

    fn value<'a>(headers: &'a OwnedHeaders, name: &str) -> Vec<Option<&'a [u8]>> {
        let named = headers.0.iter().filter(|(n, _)| n == name.as_bytes());
        named.map(|(_, value)| value.as_deref()).collect()
    }

    #[test]
    fn the_place_and_the_failure_stand_behind_the_records_own_headers() {
        let own = list(&[
            (b"id", Some(b"a")),
            (b"id", None),
            (b"", Some(b"")),
            (b"id", Some(b"\xff\0")),
        ]);
        let letter = written(&own, &CAUSE);
        assert_eq!(letter.0[..4], own.0);
        let expected: [(&str, &[u8]); 8] = [
            ("kafka_dlt-original-topic", b"orders"),
            ("kafka_dlt-original-partition", &[0, 0, 0, 2]),
            ("kafka_dlt-original-offset", &[0, 0, 0, 0, 0, 0, 0, 41]),
            (
                "kafka_dlt-original-timestamp",
                &1_700_000_000_123_i64.to_be_bytes(),
            ),
            ("kafka_dlt-original-consumer-group", b"billing"),
            (
                "kafka_dlt-exception-fqcn",
                b"idempotent_consumer::HandlerError::Reject",
            ),
            ("kafka_dlt-exception-message", b"no such account"),
            ("kafka_deliveryAttempt", &[0, 0, 0, 3]),
        ];
        let added: Vec<_> = letter.0[4..]
            .iter()
            .map(|(name, value)| (str::from_utf8(name).unwrap(), value.as_deref().unwrap()))
            .collect();
        assert_eq!(added, expected);
        let place = Origin {
            topic: "orders",
            partition: 2,
            offset: 41,
        };
        assert_eq!(origin(&record(&letter)), Some(place));
    }

    #[test]
    fn a_letter_about_a_letter_keeps_the_first_place_and_tells_the_last_failure() {
        let first = written(&list(&[(b"id", Some(b"a"))]), &CAUSE);
        // As it lies in another topic, with what Spring Kafka adds.
        let mut there = first.clone();
        there.0.insert(
            1,
            (b"kafka_dlt-exception-stacktrace".to_vec(), Some(vec![b'x'])),
        );
        there
            .0
            .push((ORIGINAL_TOPIC.into(), Some(b"orders-retry".to_vec())));
        let cause = Cause {
            error: "again",
            attempts: 1,
            ..CAUSE
        };
        let second = written(&there, &cause);
        let record = record(&second);
        let place = origin(&record).unwrap();
        assert_eq!((place.topic, place.offset), ("orders", 41));
        assert_eq!(value(&second, ORIGINAL_PARTITION).len(), 1);
        assert_eq!(value(&second, ORIGINAL_TOPIC).len(), 2, "kept as they were");
        assert_eq!(value(&second, EXCEPTION_MESSAGE), [Some(&b"again"[..])]);
        assert_eq!(value(&second, ATTEMPT), [Some(&[0, 0, 0, 1][..])]);
        assert_eq!(
            value(&second, "kafka_dlt-exception-cause-fqcn"),
            [] as [Option<&[u8]>; 0]
        );
        assert_eq!(value(&second, "kafka_dlt-exception-stacktrace").len(), 0);
        assert_eq!(value(&second, "id"), [Some(&b"a"[..])]);
    }

    #[test]
    fn a_place_that_nobody_can_read_gives_way_to_the_true_one() {
        let given = list(&[
            (b"kafka_dlt-original-topic", Some(b"elsewhere")),
            (b"kafka_dlt-original-offset", Some(b"41")),
            (b"kafka_dlt-originals", Some(b"mine")),
        ]);
        let letter = written(&given, &CAUSE);
        assert_eq!(value(&letter, ORIGINAL_TOPIC), [Some(&b"orders"[..])]);
        assert_eq!(value(&letter, "kafka_dlt-originals").len(), 1);
        assert_eq!(origin(&record(&letter)).unwrap().offset, 41);
    }

    #[test]
    fn names_that_are_no_text_are_written_as_java_reads_them() {
        let letter = written(&list(&[(b"\xffid", Some(b"\xff"))]), &CAUSE);
        assert_eq!(letter.0[0], ("\u{fffd}id".into(), Some(b"\xff".to_vec())));
    }

    #[test]
    fn each_reason_has_the_name_of_what_the_consumer_would_have_stopped_with() {
        for (reason, name) in [
            (Reason::Rejected, "HandlerError::Reject"),
            (Reason::AttemptsUsedUp, "Error::Handler"),
            (Reason::MissingKey, "Error::MissingKey"),
            (Reason::Mismatch, "Error::Mismatch"),
        ] {
            let letter = written(&OwnedHeaders::default(), &Cause { reason, ..CAUSE });
            let name = format!("idempotent_consumer::{name}");
            assert_eq!(value(&letter, EXCEPTION), [Some(name.as_bytes())]);
        }
    }

    #[test]
    fn an_error_of_any_length_is_cut_at_a_character() {
        let long = "\u{20ac}".repeat(ERROR_BYTES_MAX);
        let cause = Cause {
            error: &long,
            attempts: u32::MAX,
            ..CAUSE
        };
        let letter = written(&OwnedHeaders::default(), &cause);
        let message = value(&letter, EXCEPTION_MESSAGE)[0].unwrap();
        assert_eq!(message.len(), ERROR_BYTES_MAX / 3 * 3);
        assert!(std::str::from_utf8(message).is_ok());
        assert_eq!(
            value(&letter, ATTEMPT)[0],
            Some(&i32::MAX.to_be_bytes()[..])
        );
        assert_eq!(cut(""), "");
        assert_eq!(cut("short"), "short");
    }
}
