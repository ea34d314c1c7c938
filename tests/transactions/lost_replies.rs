//! Requests that reach the brokers, and answers that do not come back.

use std::time::Duration;

use idempotent_consumer::Transactional;
use idempotent_consumer::store::SledStore;
use idempotent_consumer::testkit::ApiKey;

use crate::member::{Member, builder, config};
use crate::{broker, feed, topics};

const KEYS: usize = 300;

/// Answers of one kind are lost, again and again, with their connections; what is asked for a second
/// time must not be done twice.
#[test]
fn whichever_answer_is_lost_each_key_is_answered_once() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let Some((_turn, proxy)) = broker::proxy(&kafka) else {
        return;
    };
    let (from, to) = topics::pair(&kafka, "lost-replies", 1);
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(&kafka, &from);
    config
        .set("bootstrap.servers", proxy.local_addr().to_string())
        .set("reconnect.backoff.ms", "20")
        .set("reconnect.backoff.max.ms", "100");
    let store = Transactional::over(SledStore::open(dir.path()).unwrap());
    let builder = builder(config, &from).commit_within(Duration::from_millis(20));
    let member = Member::start(builder, store, &to);
    let mut keys = Vec::new();
    // Produce, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, TxnOffsetCommit.
    for api in [0, 24, 25, 26, 28] {
        let dropped = proxy.stats().dropped;
        let more: Vec<_> = (keys.len()..keys.len() + KEYS / 5)
            .map(|number| format!("key-{number}"))
            .collect();
        proxy.disconnect_before_replies(ApiKey(api), 2);
        feed::produce(&kafka, &from, 0, &more);
        keys.extend(more);
        member.wait_until("what was fed", || {
            broker::committed(&kafka, &from, &from) == [i64::try_from(keys.len()).ok()]
        });
        assert!(proxy.stats().dropped > dropped, "nothing was lost of {api}");
    }
    member.stop();
    topics::assert_once(&kafka, &to, &keys, 1);
}
