//! What readers find of what handlers sent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idempotent_consumer::store::{MemoryStore, SledStore};
use idempotent_consumer::{Outgoing, RetryPolicy, Transactional};

use crate::member::{Member, builder, config};
use crate::topics::{self, Reader};
use crate::{broker, feed};

fn produce(kafka: &broker::SharedBroker, topic: &str, numbers: std::ops::Range<usize>) {
    let keys: Vec<_> = numbers.map(|number| format!("key-{number}")).collect();
    feed::produce(kafka, topic, 0, &keys);
}

#[test]
fn with_copies_in_the_input_each_key_is_answered_once_and_in_order() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (from, to) = topics::pair(&kafka, "copies", 2);
    let keys = feed::Feed::start(&kafka, &from, 2, 4_000, Duration::ZERO).wait();
    let store = Transactional::over(MemoryStore::new());
    let member = Member::start(builder(config(&kafka, &from), &from), store, &to);
    broker::wait_caught_up(&kafka, &from, &from);
    let counts = member.stop().counts;
    assert_eq!(counts.new, 4_000);
    assert!(counts.duplicate > 800, "{counts:?}");
    topics::assert_once(&kafka, &to, &keys, 2);
}

#[test]
fn a_copy_keeps_key_value_headers_and_time_and_null_is_not_empty() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (from, to) = topics::pair(&kafka, "kept", 1);
    feed::produce(&kafka, &from, 0, &["a"]);
    let store = Transactional::over(MemoryStore::new());
    let (first, second) = (to.clone(), to.clone());
    let member = Member::answering(
        builder(config(&kafka, &from), &from),
        store,
        move |record, outbox| {
            let answer = Outgoing::copy_of(record, &first);
            outbox.send(answer.header("empty", []).header("from", *b"in"));
            outbox.send(Outgoing::to(&second).timestamp_ms(7_000));
            outbox.send(Outgoing::to(&second).key([]).value([]).partition(0));
            Ok(())
        },
    );
    member.wait_until("three answers", || {
        topics::read(&kafka, &to, Reader::Committed).len() == 3
    });
    member.stop();
    let asked = topics::read(&kafka, &from, Reader::Committed);
    let found = topics::read(&kafka, &to, Reader::Committed);
    assert_eq!(found[0].key.as_deref(), Some("a"));
    assert_eq!(found[0].value.as_deref(), Some(&b"a"[..]));
    assert_eq!(found[0].timestamp_ms, asked[0].timestamp_ms);
    let headers = [
        ("empty".to_owned(), Some(vec![])),
        ("from".to_owned(), Some(b"in".to_vec())),
    ];
    assert_eq!(found[0].headers, headers);
    assert_eq!((&found[1].key, &found[1].value), (&None, &None));
    assert_eq!(found[1].timestamp_ms, Some(7_000));
    assert_eq!(found[2].key.as_deref(), Some(""));
    assert_eq!(found[2].value.as_deref(), Some(&[][..]));
}

#[test]
fn what_a_failed_attempt_sent_is_never_written() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (from, to) = topics::pair(&kafka, "failed", 1);
    produce(&kafka, &from, 0..20);
    let attempts = AtomicUsize::new(0);
    let answers = to.clone();
    let pause = Duration::from_millis(1);
    let member = Member::answering(
        builder(config(&kafka, &from), &from).retry(RetryPolicy::exponential(3, pause, pause)),
        Transactional::over(MemoryStore::new()),
        move |record, outbox| {
            let value = format!("attempt {}", record.attempt());
            outbox.send(
                Outgoing::to(&answers)
                    .key(record.key().unwrap())
                    .value(value.as_bytes()),
            );
            if attempts.fetch_add(1, Ordering::Relaxed) % 2 == 0 {
                return Err("not this time".into());
            }
            Ok(())
        },
    );
    member.wait_until("twenty answers", || {
        topics::keys(&kafka, &to, Reader::Committed).len() == 20
    });
    member.stop();
    let found = topics::read(&kafka, &to, Reader::Uncommitted);
    assert_eq!(found.len(), 20, "not even to be aborted");
    for one in found {
        assert_eq!(one.value.as_deref(), Some(&b"attempt 2"[..]));
    }
}

#[test]
fn a_transaction_holds_more_than_a_thousand_where_that_was_chosen() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (from, to) = topics::pair(&kafka, "large-transactions", 1);
    produce(&kafka, &from, 0..1_300);
    let answers = to.clone();
    let (reached, is_reached) = std::sync::mpsc::sync_channel(0);
    let member = Member::answering(
        builder(config(&kafka, &from), &from)
            .uncommitted_records_max(8_000)
            // Neither time nor bytes are to end it before.
            .commit_within(Duration::from_secs(120)),
        Transactional::over(MemoryStore::new()),
        move |record, outbox| {
            if record.offset() == 1_200 {
                reached.send(()).unwrap();
                // It goes on when the topic was read.
                reached.send(()).unwrap();
            }
            outbox.send(Outgoing::copy_of(record, &answers));
            Ok(())
        },
    );
    is_reached.recv_timeout(broker::DEADLINE).unwrap();
    let early = topics::keys(&kafka, &to, Reader::Committed);
    is_reached.recv_timeout(broker::DEADLINE).unwrap();
    assert_eq!(early, [""; 0], "committed in smaller parts");
    let new = member.stop().counts.new;
    let found = topics::keys(&kafka, &to, Reader::Committed).len();
    assert!(new > 1_200 && found as u64 == new, "{found} of {new}");
}

#[test]
fn nothing_but_copies_moves_the_offset_too_and_writes_nothing() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (from, to) = topics::pair(&kafka, "only-copies", 1);
    let dir = tempfile::tempdir().unwrap();
    produce(&kafka, &from, 0..10);
    let member = || {
        let store = Transactional::over(SledStore::open(dir.path()).unwrap());
        Member::start(builder(config(&kafka, &from), &from), store, &to)
    };
    let first = member();
    first.wait_until("the offset of the first", || {
        broker::committed(&kafka, &from, &from) == [Some(10)]
    });
    first.stop();
    produce(&kafka, &from, 0..10);
    let second = member();
    second.wait_until("the offset of the copies", || {
        broker::committed(&kafka, &from, &from) == [Some(20)]
    });
    assert_eq!(second.stop().counts.duplicate, 10);
    assert_eq!(topics::keys(&kafka, &to, Reader::Uncommitted).len(), 10);
}

#[test]
fn a_record_that_is_answered_with_more_than_a_batch_holds_is_answered_whole() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (from, to) = topics::pair(&kafka, "many", 1);
    produce(&kafka, &from, 0..2);
    let answers = to.clone();
    let store = Transactional::over(MemoryStore::new());
    let member = Member::answering(
        builder(config(&kafka, &from), &from),
        store,
        move |_, outbox| {
            for number in 0..3_000 {
                let key = format!("{number}");
                let value = vec![b'x'; 700];
                outbox.send(Outgoing::to(&answers).key(key.as_bytes()).value(value));
            }
            Ok(())
        },
    );
    member.wait_until("six thousand answers", || {
        topics::keys(&kafka, &to, Reader::Committed).len() == 6_000
    });
    member.stop();
}
