//! What can never be sent, and who may not send.

use std::sync::Arc;
use std::time::Duration;

use idempotent_consumer::store::{MemoryStore, SledStore};
use idempotent_consumer::{
    ClientConfig, Error, IdempotentConsumer, OutboxError, Outgoing, Restore, Transactional, key,
};
use rdkafka::producer::{BaseProducer, Producer as _};

use crate::member::{Member, builder, config};
use crate::topics::{self, Reader};
use crate::{admin, broker, feed};

/// Nothing was written, and nothing moved.
fn assert_untouched(kafka: &broker::SharedBroker, from: &str, to: &str) {
    assert_eq!(topics::keys(kafka, to, Reader::Committed), [""; 0]);
    assert_eq!(broker::committed(kafka, from, from), [None]);
}

#[test]
fn a_record_for_a_topic_that_is_not_there_stops_it_with_the_topics_name() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (from, to) = topics::pair(&kafka, "nowhere", 1);
    feed::produce(&kafka, &from, 0, &["a", "b"]);
    let (good, missing) = (to.clone(), admin::name("missing"));
    let named = missing.clone();
    let member = Member::answering(
        builder(config(&kafka, &from), &from),
        Transactional::over(MemoryStore::new()),
        move |record, outbox| {
            outbox.send(Outgoing::copy_of(record, &good));
            outbox.send(Outgoing::copy_of(record, &missing));
            Ok(())
        },
    );
    let error = member.error();
    let Error::Outbox(OutboxError::Record { topic, .. }) = &error else {
        panic!("{error}")
    };
    assert_eq!(*topic, named);
    assert!(error.to_string().contains("Create the topic"), "{error}");
    assert_untouched(&kafka, &from, &to);
}

#[test]
fn a_record_that_is_too_large_stops_it_with_the_topics_name() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (from, to) = topics::pair(&kafka, "large", 1);
    feed::produce(&kafka, &from, 0, &["a", "b"]);
    let large = to.clone();
    let member = Member::answering(
        builder(config(&kafka, &from), &from),
        Transactional::over(MemoryStore::new()),
        move |record, outbox| {
            outbox.send(Outgoing::copy_of(record, &large));
            outbox.send(Outgoing::to(&large).value(vec![0; 2 << 20]));
            Ok(())
        },
    );
    let error = member.error();
    let Error::Outbox(OutboxError::Record { topic, .. }) = &error else {
        panic!("{error}")
    };
    assert_eq!(*topic, to);
    assert!(error.to_string().contains("max.message.bytes"), "{error}");
    assert_untouched(&kafka, &from, &to);
}

#[test]
fn two_with_one_transactional_id_do_not_work_side_by_side_and_two_stores_do() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (from, to) = topics::pair(&kafka, "fenced", 2);
    feed::produce(&kafka, &from, 0, &["key-0"]);
    let start = |id: Option<&str>| {
        let store = Transactional::over(MemoryStore::new());
        let store = match id {
            Some(id) => store.transactional_id(id),
            None => store,
        };
        Member::start(builder(config(&kafka, &from), &from), store, &to)
    };
    let answered = |count| topics::keys(&kafka, &to, Reader::Committed).len() == count;
    let id = admin::name("one-id");
    let first = start(Some(&id));
    first.wait_until("its answer", || answered(1));
    // In one process the second is refused, and the first goes on.
    let error = start(Some(&id)).error();
    assert!(
        matches!(error, Error::Outbox(OutboxError::InUse { .. })),
        "{error}"
    );
    feed::produce(&kafka, &from, 0, &["key-1"]);
    first.wait_until("its second answer", || answered(2));
    // Another process is not seen from here, and shuts the first out.
    let mut other = ClientConfig::new();
    let servers = config(&kafka, &from);
    other
        .set(
            "bootstrap.servers",
            servers.get("bootstrap.servers").unwrap(),
        )
        .set("transactional.id", &id);
    let other: BaseProducer = other.create().unwrap();
    other.init_transactions(Duration::from_secs(30)).unwrap();
    feed::produce(&kafka, &from, 0, &["key-2"]);
    let error = first.error();
    assert!(
        matches!(error, Error::Outbox(OutboxError::Fenced { .. })),
        "{error}"
    );
    let (second, third) = (start(None), start(None));
    third.wait_until("both members", || {
        broker::group_state(&kafka, &from) == Some(("Stable".to_owned(), 2))
    });
    for partition in 0..2 {
        feed::produce(
            &kafka,
            &from,
            partition,
            &[format!("key-{}", 3 + partition)],
        );
    }
    third.wait_until("all answers", || answered(5));
    third.stop();
    second.stop();
}

#[test]
fn one_transactional_store_serves_one_consumer() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (from, to) = topics::pair(&kafka, "one-each", 1);
    feed::produce(&kafka, &from, 0, &["a"]);
    let store = Arc::new(Transactional::over(MemoryStore::new()));
    let first = Member::start(
        builder(config(&kafka, &from), &from),
        Arc::clone(&store),
        &to,
    );
    first.wait_until("its answer", || {
        topics::keys(&kafka, &to, Reader::Committed).len() == 1
    });
    let second = Member::start(
        builder(config(&kafka, &from), &from),
        Arc::clone(&store),
        &to,
    );
    let error = second.error();
    assert!(
        matches!(error, Error::Outbox(OutboxError::InUse { .. })),
        "{error}"
    );
    first.stop();
    // One after the other is no matter.
    feed::produce(&kafka, &from, 0, &["b"]);
    let third = Member::start(
        builder(config(&kafka, &from), &from),
        Arc::clone(&store),
        &to,
    );
    third.wait_until("its answer", || {
        topics::keys(&kafka, &to, Reader::Committed).len() == 2
    });
    third.stop();
}

#[test]
fn what_does_not_go_together_with_transactions_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut own = ClientConfig::new();
    own.set("acks", "1").set("transactional.id", "mine");
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", "localhost:1")
        .set("group.id", "g");
    let store = Transactional::over(SledStore::open(dir.path()).unwrap())
        .config(own)
        .transaction_timeout(Duration::from_secs(60));
    let built = IdempotentConsumer::builder(config)
        .topics(["a"])
        .key(key::value())
        .restore(Restore::Ignore)
        .ordering(idempotent_consumer::Ordering::Unordered)
        .build(store);
    let Err(Error::Refused(refused)) = built else {
        panic!("it was built")
    };
    let settings: Vec<_> = refused.0.iter().map(|finding| &*finding.setting).collect();
    for setting in [
        "ordering",
        "restore",
        "acks",
        "transactional.id",
        "transaction_timeout",
    ] {
        assert!(settings.contains(&setting), "{setting}: {settings:?}");
    }
}
