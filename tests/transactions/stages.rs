//! A process that is killed at each stage between the handler and the mark.

use std::path::Path;

use idempotent_consumer::testkit::ApiKey;

use crate::child::{self, Death, Orders};
use crate::topics::{self, Reader};
use crate::{broker, feed};

const ADD_OFFSETS_TO_TXN: ApiKey = ApiKey(25);
const END_TXN: ApiKey = ApiKey(26);
/// More answers than are waited for.
const MANY: u32 = 1_000;
const KEYS: usize = 100;

fn orders(bootstrap: &str, from: &str, to: &str, store: &Path, death: Death) -> Orders {
    let settings = [
        ("bootstrap.servers", bootstrap),
        ("group.id", from),
        // Its next life has its place in the group at once.
        ("group.instance.id", "one"),
        ("session.timeout.ms", "20000"),
        // Several batches, so several transactions.
        ("fetch.message.max.bytes", "500"),
    ];
    Orders {
        settings: settings.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        from: from.to_owned(),
        to: to.to_owned(),
        store: store.join("seen"),
        death,
        timeout_ms: 10_000,
    }
}

/// One process dies of `death`, the next one does the rest.
fn dies_by_itself(idea: &str, death: Death) {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (from, to) = topics::pair(&kafka, idea, 1);
    let dir = tempfile::tempdir().unwrap();
    let keys: Vec<_> = (0..KEYS).map(|number| format!("key-{number}")).collect();
    let (early, late) = keys.split_at(KEYS / 2);
    feed::produce(&kafka, &from, 0, early);
    let start = |death| child::start(&orders(kafka.bootstrap(), &from, &to, dir.path(), death));
    let mut process = start(death);
    broker::wait_for("a commit, or the death before", || {
        process.has_ended() || broker::committed(&kafka, &from, &from) == [Some(50)]
    });
    feed::produce(&kafka, &from, 0, late);
    process.wait_for_death();
    let process = start(Death::Outside);
    broker::wait_caught_up(&kafka, &from, &from);
    process.stop();
    topics::assert_once(&kafka, &to, &keys, 1);
}

#[test]
fn killed_before_anything_is_sent_all_is_answered_once() {
    dies_by_itself("before-produce", Death::Handler(60));
}

#[test]
fn killed_between_the_transaction_and_the_marks_nothing_is_sent_again() {
    dies_by_itself("before-mark", Death::Mark(0));
    dies_by_itself("before-mark-again", Death::Mark(1));
}

/// The broker's answers of one kind are lost until the process is killed, when `reached` holds.
fn dies_without_answers(idea: &str, of: ApiKey, seen: Reader, unseen: Option<Reader>) {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let Some((_turn, proxy)) = broker::proxy(&kafka) else {
        return;
    };
    let (from, to) = topics::pair(&kafka, idea, 1);
    let dir = tempfile::tempdir().unwrap();
    let keys: Vec<_> = (0..KEYS).map(|number| format!("key-{number}")).collect();
    feed::produce(&kafka, &from, 0, &keys);
    proxy.drop_replies(of, MANY);
    let proxied = proxy.local_addr().to_string();
    let process = child::start(&orders(&proxied, &from, &to, dir.path(), Death::Outside));
    broker::wait_for("lost answers and records", || {
        proxy.stats().dropped > 0 && !topics::keys(&kafka, &to, seen).is_empty()
    });
    process.kill();
    if let Some(unseen) = unseen {
        let found = topics::keys(&kafka, &to, unseen);
        assert_eq!(found, [""; 0], "it was committed too early");
    }
    let direct = orders(kafka.bootstrap(), &from, &to, dir.path(), Death::Outside);
    let process = child::start(&direct);
    broker::wait_caught_up(&kafka, &from, &from);
    process.stop();
    topics::assert_once(&kafka, &to, &keys, 1);
}

#[test]
fn killed_when_records_are_written_and_nothing_is_committed_they_are_void() {
    let (seen, unseen) = (Reader::Uncommitted, Some(Reader::Committed));
    dies_without_answers("after-produce", ApiKey::PRODUCE, seen, unseen);
}

#[test]
fn killed_when_only_the_commit_is_left_the_records_are_void() {
    let (seen, unseen) = (Reader::Uncommitted, Some(Reader::Committed));
    dies_without_answers("before-commit", ADD_OFFSETS_TO_TXN, seen, unseen);
}

#[test]
fn killed_when_it_is_committed_and_not_known_to_be_nothing_is_sent_again() {
    dies_without_answers("after-commit", END_TXN, Reader::Committed, None);
}
