//! Partitions that move to another member while answers are under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use idempotent_consumer::store::{MemoryStore, SledStore};
use idempotent_consumer::{Outgoing, Transactional};

use crate::child::{self, Death, Orders};
use crate::feed::Feed;
use crate::member::{Member, builder, config_of};
use crate::topics::Reader;
use crate::{broker, feed, topics};

const PARTITIONS: usize = 4;
/// More than is sent before the members have moved.
const KEYS_MAX: usize = 1_000_000;
/// Between two bursts of a hundred.
const PACE: Duration = Duration::from_millis(50);

/// Members with stores of their own come and go while records keep coming.
fn members_come_and_go(idea: &str, protocol: &[(&str, &str)]) {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (from, to) = topics::pair(&kafka, idea, i32::try_from(PARTITIONS).unwrap());
    let feed = Feed::start(&kafka, &from, PARTITIONS, KEYS_MAX, PACE);
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let start = |dir: &tempfile::TempDir| {
        let store = Transactional::over(SledStore::open(dir.path()).unwrap());
        let config = config_of(&kafka, &from, protocol);
        Member::start(builder(config, &from), store, &to)
    };
    let reached = || kafka.end_offsets(&to).iter().sum::<i64>();
    let more = |member: &Member, answers: i64| {
        let wanted = reached() + answers;
        member.wait_until("more answers", || reached() >= wanted);
    };
    let first = start(&one);
    more(&first, 500);
    let second = start(&two);
    more(&second, 1_000);
    first.stop();
    more(&second, 500);
    let first = start(&one);
    more(&first, 500);
    second.stop();
    let keys = feed.stop();
    broker::wait_caught_up(&kafka, &from, &from);
    first.stop();
    topics::assert_once(&kafka, &to, &keys, PARTITIONS);
}

#[test]
fn each_key_is_answered_once_when_members_come_and_go_under_range() {
    members_come_and_go("range", &[("partition.assignment.strategy", "range")]);
}

#[test]
fn each_key_is_answered_once_when_members_come_and_go_cooperatively() {
    let protocol = [("partition.assignment.strategy", "cooperative-sticky")];
    members_come_and_go("cooperative", &protocol);
}

#[test]
fn each_key_is_answered_once_when_members_come_and_go_by_the_brokers_own_protocol() {
    members_come_and_go("consumer", &[("group.protocol", "consumer")]);
}

#[test]
fn what_is_late_is_not_sent_by_a_member_that_works_on_elsewhere() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (from, to) = topics::pair(&kafka, "late", 2);
    let keys = ["key-0".to_owned(), "key-1".to_owned()];
    for (partition, key) in (0..).zip(&keys) {
        feed::produce(&kafka, &from, partition, std::slice::from_ref(key));
    }
    let protocol = [("partition.assignment.strategy", "cooperative-sticky")];
    let member = || {
        let builder = builder(config_of(&kafka, &from, &protocol), &from);
        builder.drain_limit(Duration::from_millis(200))
    };
    let (begun, gate) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let ended = Arc::new(AtomicUsize::new(0));
    let left = Arc::clone(&ended);
    let (entered, open, answers) = (Arc::clone(&begun), Arc::clone(&gate), to.clone());
    let store = Transactional::over(MemoryStore::new());
    let first = Member::answering(member(), store, move |record, outbox| {
        outbox.send(Outgoing::copy_of(record, &answers));
        entered.fetch_add(1, Ordering::Relaxed);
        while !open.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        left.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    first.wait_until("both in hand", || begun.load(Ordering::Relaxed) == 2);
    let store = Transactional::over(MemoryStore::new());
    let second = Member::start(member(), store, &to);
    let answered = || topics::keys(&kafka, &to, Reader::Committed).len();
    second.wait_until("the answer for the partition that moved", || {
        answered() == 1
    });
    let moved = usize::from(topics::keys(&kafka, &to, Reader::Committed) == ["key-1"]);
    // The first ends both now: that of the partition that it has still, and the late one.
    gate.store(true, Ordering::Relaxed);
    first.wait_until("the answer for the other", || answered() >= 2);
    first.wait_until("the late one's end", || ended.load(Ordering::Relaxed) == 2);
    topics::assert_once(&kafka, &to, &keys, 2);
    // What was not sent is not in flight any more. The first has a store of its own, which knows
    // nothing of the other's answer.
    let kept = i32::from(moved == 0);
    let late = format!("key-{moved}");
    feed::produce(&kafka, &from, kept, &[&late, "key-9"]);
    first.wait_until("the answer behind a copy of the late one", || {
        topics::keys(&kafka, &to, Reader::Committed).contains(&"key-9".to_owned())
    });
    first.stop();
    second.stop();
}

/// A member is stopped in its tracks until others have its partitions, and wakes up again.
fn a_sleeper_wakes_up(idea: &str, protocol: &[(&str, &str)]) {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let (from, to) = topics::pair(&kafka, idea, i32::try_from(PARTITIONS).unwrap());
    let feed = Feed::start(&kafka, &from, PARTITIONS, KEYS_MAX, PACE);
    let dir = tempfile::tempdir().unwrap();
    let orders = |name: &str| {
        let mut settings = vec![
            ("bootstrap.servers", kafka.bootstrap()),
            ("group.id", &from),
        ];
        if protocol
            .iter()
            .all(|(setting, _)| *setting != "group.protocol")
        {
            settings.push(("session.timeout.ms", broker::short_session_ms(&kafka)));
            settings.push(("heartbeat.interval.ms", "300"));
        }
        settings.extend(protocol);
        let owned = |(k, v): (&str, &str)| (k.to_owned(), v.to_owned());
        Orders {
            settings: settings.into_iter().map(owned).collect(),
            from: from.clone(),
            to: to.clone(),
            store: dir.path().join(name),
            death: Death::Outside,
            timeout_ms: 2_000,
        }
    };
    let committed = || {
        let all = broker::committed(&kafka, &from, &from);
        all.into_iter().flatten().sum::<i64>()
    };
    let (mut one, mut two) = (child::start(&orders("one")), child::start(&orders("two")));
    for sleeper in [&mut one, &mut two] {
        let before = committed();
        broker::wait_for("progress", || {
            sleeper.assert_running();
            committed() > before
        });
        let wake_at = || {
            let all = broker::committed(&kafka, &from, &from);
            all.into_iter()
                .map(Option::unwrap_or_default)
                .collect::<Vec<_>>()
        };
        sleeper.signal("STOP");
        let asleep = wake_at();
        broker::wait_for("others' progress on every partition", || {
            let now = wake_at();
            let ends = kafka.end_offsets(&from);
            let mut all = now.iter().zip(&asleep).zip(&ends);
            all.all(|((now, then), end)| now > then || now == end)
        });
        sleeper.signal("CONT");
    }
    let keys = feed.stop();
    broker::wait_caught_up(&kafka, &from, &from);
    one.stop();
    two.stop();
    topics::assert_once(&kafka, &to, &keys, PARTITIONS);
}

#[test]
fn a_member_that_slept_through_the_loss_of_its_partitions_sends_nothing_of_them() {
    a_sleeper_wakes_up("sleeper", &[]);
}

#[test]
fn nor_does_one_of_a_cooperative_group() {
    let protocol = [("partition.assignment.strategy", "cooperative-sticky")];
    a_sleeper_wakes_up("sleeper-cooperative", &protocol);
}

#[test]
fn nor_does_one_of_the_brokers_own_protocol() {
    a_sleeper_wakes_up("sleeper-consumer", &[("group.protocol", "consumer")]);
}
