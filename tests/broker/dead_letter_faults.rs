//! Letters and a bad network: confirmed or an error, and never without an end.

use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use idempotent_consumer::testkit::{ApiKey, FaultProxy, Letters, Produced};
use idempotent_consumer::{DeadLetter, DeadLetterError};

use crate::admin;
use crate::broker::{self, DEADLINE};
use crate::letters::{consumer, error, failed, keyed, runtime, settings};

/// For letters that do not arrive; others that are written meanwhile must arrive within it.
const TIMEOUT: Duration = Duration::from_secs(4);
/// librdkafka looks for letters whose time is up once a second; and a busy machine.
const TIMEOUT_SLACK: Duration = Duration::from_secs(40);

/// Letters that go to the broker through a proxy, and are given up after a while.
fn through_a_proxy(
    idea: &str,
    timeout: Duration,
    harm: impl FnOnce(&FaultProxy, Letters, &dyn Fn() -> Vec<i64>),
) {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let Some((_turn, proxy)) = broker::proxy(&kafka) else {
        return;
    };
    let topic = admin::topic(&kafka, idea, 1);
    let timeout_ms = timeout.as_millis().to_string();
    let consumer = consumer(&proxy.local_addr().to_string());
    let dead_letter =
        DeadLetter::to_topic(&topic).config(settings(&[("delivery.timeout.ms", &timeout_ms)]));
    let letters = Letters::open(&dead_letter, &consumer).unwrap();
    harm(&proxy, letters, &|| kafka.end_offsets(&topic));
}

// C005, C006
#[test]
fn without_a_broker_a_letter_fails_within_its_time_and_is_never_taken_for_written() {
    through_a_proxy("letters-cut", TIMEOUT, |proxy, letters, ends| {
        let runtime = runtime();
        runtime
            .block_on(letters.write(&failed(1, keyed(b"k", b"v"))))
            .unwrap();
        for silent in [true, false] {
            if silent {
                proxy.stall();
            } else {
                proxy.cut();
            }
            let begun = Instant::now();
            // A null value once failed in the way out itself.
            let written = runtime.block_on(letters.write(&failed(2, Produced::default())));
            let text = error(written);
            let timeout_ms = TIMEOUT.as_millis();
            let named = format!("delivery.timeout.ms={timeout_ms}");
            assert!(text.contains(&named), "{text}");
            assert!(begun.elapsed() >= TIMEOUT, "{:?}", begun.elapsed());
            assert!(
                begun.elapsed() < TIMEOUT + TIMEOUT_SLACK,
                "{:?}",
                begun.elapsed()
            );
        }
        proxy.heal();
        let end = Instant::now() + DEADLINE;
        while let Err(error) = runtime.block_on(letters.write(&failed(3, keyed(b"k", b"v")))) {
            assert!(Instant::now() < end, "{error}");
        }
        // The two of the answered writes; those that were given up may be there as well.
        assert!((2..=4).contains(&ends()[0]), "{:?}", ends());
    });
}

#[test]
fn a_letter_whose_confirmation_is_lost_is_there_once() {
    through_a_proxy("letters-lost-answer", DEADLINE, |proxy, letters, ends| {
        let runtime = runtime();
        runtime
            .block_on(letters.write(&failed(1, keyed(b"k", b"v"))))
            .unwrap();
        for offset in 2..5 {
            proxy.disconnect_before_replies(ApiKey::PRODUCE, 1);
            runtime
                .block_on(letters.write(&failed(offset, keyed(b"k", b"v"))))
                .unwrap();
        }
        assert_eq!(ends(), [4]);
    });
}

/// Begins to write and waits no longer: the letter is on its way.
fn abandon(letters: &Letters) {
    let letter = failed(1, keyed(b"k", b"v"));
    let mut write = Box::pin(letters.write(&letter));
    let polled = write.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
}

// C091
#[test]
fn closing_waits_for_letters_that_nobody_waits_for() {
    through_a_proxy("letters-close", DEADLINE, |_, letters, ends| {
        abandon(&letters);
        letters.close(DEADLINE).unwrap();
        assert_eq!(ends(), [1]);
    });
}

// C091
#[test]
fn closing_says_so_when_letters_are_left() {
    through_a_proxy("letters-left", DEADLINE, |proxy, letters, _| {
        proxy.stall();
        abandon(&letters);
        let closed = letters.close(Duration::from_millis(200));
        assert!(
            matches!(closed, Err(DeadLetterError::Unconfirmed { .. })),
            "{closed:?}"
        );
    });
}
