//! A transaction that its process has left open.

use std::time::{Duration, Instant};

use idempotent_consumer::Transactional;
use idempotent_consumer::store::MemoryStore;
use idempotent_consumer::testkit::ApiKey;

use crate::child::{self, Death, Orders};
use crate::member::{Member, builder, config};
use crate::topics::{self, Reader};
use crate::{broker, feed};

const TIMEOUT: Duration = Duration::from_secs(8);
/// How often this broker looks for transactions that are over their time, and what a loaded machine
/// takes for the rest.
const SLACK: Duration = Duration::from_secs(6);

#[test]
fn it_holds_up_whoever_takes_the_partition_over_for_its_time_out_and_no_longer() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let Some((_turn, proxy)) = broker::proxy(&kafka) else {
        return;
    };
    let (from, to) = topics::pair(&kafka, "hanging", 1);
    let dir = tempfile::tempdir().unwrap();
    let keys: Vec<_> = (0..10).map(|number| format!("key-{number}")).collect();
    feed::produce(&kafka, &from, 0, &keys);
    // Without an answer to the offsets it never asks for the commit.
    proxy.drop_replies(ApiKey(28), 1_000);
    let proxied = proxy.local_addr().to_string();
    let settings = [
        ("bootstrap.servers", &*proxied),
        ("group.id", &from),
        ("session.timeout.ms", broker::short_session_ms(&kafka)),
        ("heartbeat.interval.ms", "300"),
    ];
    let orders = Orders {
        settings: settings.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        from: from.clone(),
        to: to.clone(),
        store: dir.path().join("seen"),
        death: Death::Outside,
        timeout_ms: u64::try_from(TIMEOUT.as_millis()).unwrap(),
    };
    let process = child::start(&orders);
    broker::wait_for("offsets without an answer", || proxy.stats().dropped > 0);
    process.kill();
    let killed = Instant::now();
    // Another store, so another transactional id: nothing but the time-out ends it.
    let store = Transactional::over(MemoryStore::new());
    let member = Member::start(builder(config(&kafka, &from), &from), store, &to);
    member.wait_until("all answers", || {
        topics::keys(&kafka, &to, Reader::Committed).len() == keys.len()
    });
    let blocked = killed.elapsed();
    member.stop();
    assert!(blocked < TIMEOUT + SLACK, "{blocked:?}");
    topics::assert_once(&kafka, &to, &keys, 1);
    let written = topics::keys(&kafka, &to, Reader::Uncommitted).len();
    assert_eq!(written, 2 * keys.len(), "the first ten were void");
}

#[test]
fn the_same_store_opened_again_ends_it_at_once() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let Some((_turn, proxy)) = broker::proxy(&kafka) else {
        return;
    };
    let (from, to) = topics::pair(&kafka, "ended", 1);
    let dir = tempfile::tempdir().unwrap();
    feed::produce(&kafka, &from, 0, &["key-0"]);
    proxy.drop_replies(ApiKey(28), 1_000);
    let proxied = proxy.local_addr().to_string();
    let settings = |bootstrap: &str| {
        let all = [
            ("bootstrap.servers", bootstrap),
            ("group.id", &from),
            ("group.instance.id", "one"),
        ];
        all.map(|(k, v)| (k.to_owned(), v.to_owned())).into()
    };
    let mut orders = Orders {
        settings: settings(&proxied),
        from: from.clone(),
        to: to.clone(),
        store: dir.path().join("seen"),
        death: Death::Outside,
        timeout_ms: 30_000,
    };
    let process = child::start(&orders);
    broker::wait_for("offsets without an answer", || proxy.stats().dropped > 0);
    process.kill();
    let killed = Instant::now();
    orders.settings = settings(kafka.bootstrap());
    let process = child::start(&orders);
    broker::wait_for("the answer", || {
        topics::keys(&kafka, &to, Reader::Committed).len() == 1
    });
    assert!(
        killed.elapsed() < Duration::from_secs(25),
        "its time-out is 30 s"
    );
    process.stop();
}
