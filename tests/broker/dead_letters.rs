//! Letters on a real broker: what is in them, where they lie, and what is refused.

use std::time::{Duration, Instant};

use idempotent_consumer::testkit::{Failed, Letters, Produced};
use idempotent_consumer::{Coordinates, DeadLetter, DeadLetterError, TopicPartition};
use rdkafka::Message as _;
use rdkafka::message::OwnedMessage;

use crate::letters::{
    TIMESTAMP_MS, consumer, error, failed, header_list, is_there, keyed, now_ms, read, runtime,
    settings,
};
use crate::{admin, broker};

/// What is refused for good is not tried for the whole of its time, which is half a minute for a
/// start and a minute for a letter.
const AT_ONCE: Duration = Duration::from_secs(25);

// C019
#[test]
fn a_letter_has_every_byte_of_its_record_and_says_where_it_was_and_why() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic(&kafka, "letters", 1);
    let letters =
        Letters::open(&DeadLetter::to_topic(&topic), &consumer(kafka.bootstrap())).unwrap();
    let bytes: Vec<u8> = (0..=255).collect();
    let own: &[(&str, Option<&[u8]>)] = &[
        ("id", Some(b"a")),
        ("id", None),
        ("", Some(b"")),
        ("id", Some(&bytes)),
    ];
    let many: Vec<(&str, Option<&[u8]>)> = (0..10_000)
        .map(|at| (if at % 2 == 0 { "even" } else { "odd" }, Some(&b"v"[..])))
        .collect();
    let given = [
        Produced {
            headers: own,
            ..keyed(&bytes, &bytes)
        },
        Produced::default(),
        keyed(b"", b""),
        Produced {
            headers: &many,
            key: Some(b"tombstone"),
            ..Produced::default()
        },
    ];
    let (runtime, before_ms) = (runtime(), now_ms());
    for (offset, record) in (0..).zip(given) {
        runtime
            .block_on(letters.write(&failed(offset, record)))
            .unwrap();
    }
    letters.close(Duration::ZERO).unwrap();

    let found = read(&kafka, &topic, given.len());
    for ((offset, given), found) in (0_i64..).zip(&given).zip(&found) {
        assert_eq!(found.key(), given.key);
        assert_eq!(found.payload(), given.value);
        // Retention by time counts from when it was written, however old the record is.
        let written_ms = found.timestamp().to_millis().unwrap();
        assert!((before_ms..=now_ms()).contains(&written_ms), "{written_ms}");
        let headers = header_list(found);
        let (kept, added) = headers.split_at(given.headers.len());
        let kept: Vec<_> = kept
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_deref()))
            .collect();
        assert_eq!(kept, given.headers);
        let at = offset.to_be_bytes();
        let expected: [(&str, &[u8]); 8] = [
            ("kafka_dlt-original-topic", b"orders"),
            ("kafka_dlt-original-partition", &[0, 0, 0, 7]),
            ("kafka_dlt-original-offset", &at),
            ("kafka_dlt-original-timestamp", &TIMESTAMP_MS.to_be_bytes()),
            ("kafka_dlt-original-consumer-group", b"billing"),
            (
                "kafka_dlt-exception-fqcn",
                b"idempotent_consumer::Error::Handler",
            ),
            ("kafka_dlt-exception-message", b"no such account"),
            ("kafka_deliveryAttempt", &[0, 0, 0, 5]),
        ];
        let added: Vec<_> = added
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_deref().unwrap()))
            .collect();
        assert_eq!(added, expected);
    }
}

#[test]
fn letters_lie_in_order_where_a_java_producer_puts_their_keys() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic(&kafka, "letter-keys", 5);
    let letters =
        Letters::open(&DeadLetter::to_topic(&topic), &consumer(kafka.bootstrap())).unwrap();
    // What the Java client's own tests expect of its hash.
    let hashes: [(&str, i32); 5] = [
        ("21", -973_932_308),
        ("foobar", -790_332_482),
        ("a-little-bit-long-string", -985_981_536),
        ("a-little-bit-longer-string", -1_486_304_829),
        ("abc", 479_470_107),
    ];
    let runtime = runtime();
    for offset in 0..4_u8 {
        for (key, _) in hashes {
            let record = keyed(key.as_bytes(), std::slice::from_ref(&offset));
            runtime
                .block_on(letters.write(&failed(i64::from(offset), record)))
                .unwrap();
        }
    }
    let found = read(&kafka, &topic, 4 * hashes.len());
    for (key, hash) in hashes {
        let of_key: Vec<&OwnedMessage> = found
            .iter()
            .filter(|letter| letter.key() == Some(key.as_bytes()))
            .collect();
        let values: Vec<_> = of_key
            .iter()
            .map(|letter| letter.payload().unwrap())
            .collect();
        assert_eq!(values, [[0], [1], [2], [3]]);
        for letter in of_key {
            assert_eq!(letter.partition(), (hash & i32::MAX) % 5, "{key}");
        }
    }
}

// C088
#[test]
fn a_producer_that_could_lose_letters_is_refused_by_name() {
    let bad = DeadLetter::to_topic("orders.DLT").config(settings(&[("acks", "1")]));
    let refused = Letters::open(&bad, &consumer("127.0.0.1:1"));
    let Err(DeadLetterError::Refused(refused)) = refused.map(|_| ()) else {
        panic!("it was not refused")
    };
    assert!(refused.to_string().contains("acks=1"), "{refused}");
}

#[test]
fn a_topic_that_is_missing_is_named_and_not_created() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::name("no-such-letters");
    let begun = Instant::now();
    let opened = Letters::open(&DeadLetter::to_topic(&topic), &consumer(kafka.bootstrap()));
    let Err(error @ DeadLetterError::Topic { .. }) = opened.map(|_| ()) else {
        panic!("it was opened")
    };
    let text = error.to_string();
    assert!(text.contains(&topic) && text.contains("Create"), "{text}");
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    // A topic that was asked for would be made in the background, before one that is made later.
    admin::topic(&kafka, "made-after-no-such-letters", 1);
    assert!(!is_there(&kafka, &topic));
}

#[test]
fn a_letter_that_is_too_large_fails_at_once_and_the_setting_is_named() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic_with(&kafka, "large-letters", &[("max.message.bytes", "10000")]);
    let plain = DeadLetter::to_topic(&topic);
    let limited = plain
        .clone()
        .config(settings(&[("message.max.bytes", "5000")]));
    // Both records fit by themselves: it is the added headers that do not.
    for (dead_letter, value_bytes) in [(plain, 9_800), (limited, 4_800)] {
        let letters = Letters::open(&dead_letter, &consumer(kafka.bootstrap())).unwrap();
        let value = vec![b'x'; value_bytes];
        let begun = Instant::now();
        let written = runtime().block_on(letters.write(&failed(1, keyed(b"k", &value))));
        let text = error(written);
        assert!(text.contains("max.message.bytes"), "{text}");
        assert!(text.contains("message.max.bytes"), "{text}");
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
        runtime()
            .block_on(letters.write(&failed(2, keyed(b"k", b"fits"))))
            .unwrap();
    }
    assert_eq!(kafka.end_offsets(&topic), [2]);
}

#[test]
fn a_letter_may_be_as_large_as_the_topic_allows() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic_with(&kafka, "wide-letters", &[("max.message.bytes", "4194304")]);
    let dead_letter = DeadLetter::to_topic(&topic);
    let letters = Letters::open(&dead_letter, &consumer(kafka.bootstrap())).unwrap();
    // Above what librdkafka allows a producer where nothing is said.
    let value = vec![b'x'; 2 << 20];
    let letter = failed(1, keyed(b"k", &value));
    runtime().block_on(letters.write(&letter)).unwrap();
    assert_eq!(kafka.end_offsets(&topic), [1]);
}

#[test]
fn a_letter_without_a_key_is_refused_by_a_compacted_topic_and_the_setting_is_named() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic_with(&kafka, "no-key-letters", &[("cleanup.policy", "compact")]);
    let dead_letter = DeadLetter::to_topic(&topic);
    let letters = Letters::open(&dead_letter, &consumer(kafka.bootstrap())).unwrap();
    let written = runtime().block_on(letters.write(&failed(1, Produced::default())));
    let text = error(written);
    assert!(text.contains("cleanup.policy"), "{text}");
    assert_eq!(kafka.end_offsets(&topic), [0]);
}

// C092
#[test]
fn letters_about_records_of_any_time_are_taken() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    // An hour on either side, and what is older goes.
    let an_hour = [
        ("message.timestamp.after.max.ms", "3600000"),
        ("message.timestamp.before.max.ms", "3600000"),
        ("retention.ms", "3600000"),
    ];
    let topic = admin::topic_with(&kafka, "timeless-letters", &an_hour);
    let dead_letter = DeadLetter::to_topic(&topic);
    let letters = Letters::open(&dead_letter, &consumer(kafka.bootstrap())).unwrap();
    let year_2100_ms = 4_102_444_800_000_i64;
    let times = [Some(1), Some(year_2100_ms), None];
    for (offset, timestamp_ms) in (0..).zip(times) {
        let letter = Failed {
            timestamp_ms,
            ..failed(offset, keyed(b"k", b"v"))
        };
        runtime().block_on(letters.write(&letter)).unwrap();
    }
    for (letter, timestamp_ms) in read(&kafka, &topic, times.len()).iter().zip(times) {
        let value = timestamp_ms.unwrap_or(-1).to_be_bytes().to_vec();
        let original = ("kafka_dlt-original-timestamp".to_owned(), Some(value));
        assert!(header_list(letter).contains(&original));
    }
}

#[test]
fn a_record_of_the_dead_letter_topic_itself_gets_no_letter() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic(&kafka, "own-letters", 1);
    let dead_letter = DeadLetter::to_topic(&topic);
    let letters = Letters::open(&dead_letter, &consumer(kafka.bootstrap())).unwrap();
    let own = Failed {
        at: Coordinates::new(TopicPartition::new(topic.as_str(), 0), 3),
        ..failed(3, keyed(b"k", b"v"))
    };
    let written = runtime().block_on(letters.write(&own));
    assert!(
        matches!(written, Err(DeadLetterError::OwnTopic { .. })),
        "{written:?}"
    );
    assert_eq!(kafka.end_offsets(&topic), [0]);
}
