//! Keys that expire, while the consumer runs.

use std::sync::Arc;
use std::time::Duration;

use idempotent_consumer::store::{MemoryStore, PartitionId, Retaining as _, Store as _};
use idempotent_consumer::testkit::EmbeddedBroker;
use idempotent_consumer::{AtCap, Builder, Error, Retention};

use crate::scripted::Scripted;
use crate::support::*;
use crate::timestamps::produce_to;

const HOUR_MS: i64 = 3_600_000;
const BEGAN_MS: i64 = 1_700_000_000_000;

fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3_600)
}

/// Records of partition 0: one of each hour.
fn produce_hours(broker: &EmbeddedBroker, hours: std::ops::Range<i64>) {
    for hour in hours {
        let key = format!("hour-{hour}");
        produce_to(broker, 0, &key, BEGAN_MS + hour * HOUR_MS);
    }
}

/// A unit for each record, and positions that follow at once.
fn often(broker: &EmbeddedBroker, retention: Retention) -> Builder {
    builder(broker)
        .retention(retention)
        .uncommitted_records_max(1)
        .offset_interval(Duration::ZERO)
}

/// `a` at hour 0, a copy of it in partition 1, where nothing expires, and one at hour 0.5; then more
/// until the first ones lie before what is kept. `between` is called behind each part.
fn produce_all(broker: &EmbeddedBroker, between: impl Fn(usize)) {
    produce_to(broker, 0, "a", BEGAN_MS);
    between(1);
    produce_to(broker, 1, "a", BEGAN_MS);
    produce_to(broker, 1, "b", BEGAN_MS);
    between(2);
    produce_to(broker, 0, "a", BEGAN_MS + HOUR_MS / 2);
    produce_hours(broker, 1..9);
    between(10);
}

/// Works through that until the first ones have expired.
fn worked_on() -> (EmbeddedBroker, Scripted) {
    let (broker, store) = (broker(2), Scripted::new());
    let retention = Retention::for_duration(hours(1));
    let running = Running::start(often(&broker, retention), store.clone(), |_| Ok(()));
    produce_all(&broker, |effects| running.wait(effects));
    let heads = store.heads();
    let first = heads.iter().position(|(name, _)| name.partition() == 0);
    let first = PartitionId(u32::try_from(first.unwrap()).unwrap());
    running.wait_for("expiry", || store.retained_from(first).get() >= 4);
    assert_eq!(running.stop().counts.duplicate, 2);
    (broker, store)
}

/// The same records, in a group that has nothing committed: the embedded broker lets nobody set a
/// group back that had members.
fn rewound() -> EmbeddedBroker {
    let broker = broker(2);
    produce_all(&broker, |_| {});
    broker
}

// C056
#[test]
fn a_copy_within_the_retention_is_passed_over_and_one_behind_it_is_handled() {
    let (broker, store) = worked_on();
    produce_to(&broker, 0, "hour-8", BEGAN_MS + 9 * HOUR_MS);
    produce_to(&broker, 0, "a", BEGAN_MS + 9 * HOUR_MS);
    let (effects, report) = consume(often(&broker, Retention::default()), store, 1);
    assert_eq!(effects, ["0:11:a=v"]);
    assert_eq!((report.counts.new, report.counts.duplicate), (1, 1));
}

// C056
#[test]
fn a_rewind_below_what_is_kept_handles_nothing_again_and_takes_nothing_for_another_topic() {
    let (_, store) = worked_on();
    let broker = rewound();
    produce_to(&broker, 0, "end", BEGAN_MS + 9 * HOUR_MS);
    produce_to(&broker, 1, "end of 1", BEGAN_MS);
    let (mut effects, report) = consume(often(&broker, Retention::default()), store, 2);
    effects.sort();
    assert_eq!(effects, ["0:10:end=v", "1:2:end of 1=v"]);
    assert!(report.counts.redelivery >= 10, "{:?}", report.counts);
}

// C048
#[test]
fn another_topic_is_recognised_by_its_anchor_when_keys_have_expired() {
    let (_, store) = worked_on();
    let new = broker(2);
    produce_numbered(&new, 0, 20..60);
    let retention = Retention::default();
    let running = Running::start(often(&new, retention), store.clone(), |_| Ok(()));
    let effects = running.effects.clone();
    let error = running.error();
    assert!(matches!(error, Error::TopicChanged { .. }), "{error}");
    assert_eq!(effects.len(), 0);
    assert_eq!(Operator::new(&new).committed(0), None);
}

/// More than a cap of 10,000 leaves room for.
const RECORDS: u32 = 15_000;

#[test]
fn at_a_cap_nothing_new_is_handled_and_nothing_is_dropped_until_there_is_room() {
    let (broker, store) = (broker(1), Arc::new(MemoryStore::new()));
    produce_numbered(&broker, 0, 0..RECORDS);
    let cap = Retention::max_entries(10_000);
    let running = Running::start(builder(&broker).retention(cap), Arc::clone(&store), |_| {
        Ok(())
    });
    running.wait(10_000);
    running.wait_for("everything in hand", || {
        store.usage().entries == running.effects.len() as u64
    });
    // Longer than the group would bear a member that does not poll.
    let end = std::time::Instant::now() + Duration::from_secs(3);
    running.wait_for("a session", || std::time::Instant::now() > end);
    // What had been taken in before: the uncommitted ones, and a window.
    let held = running.effects.len();
    assert!((10_000..11_300).contains(&held), "{held}");
    running.stop();
    assert_eq!(store.usage().entries, held as u64);
    let more = Retention::max_entries(100_000);
    let left = RECORDS as usize - held;
    let (effects, report) = consume(builder(&broker).retention(more), store, left);
    assert_eq!(effects.len(), left);
    assert_eq!(report.counts.duplicate, 0);
}

// C068
#[test]
fn at_a_cap_with_a_window_that_may_shrink_the_oldest_keys_go_and_all_is_handled() {
    let (broker, store) = (broker(1), Arc::new(MemoryStore::new()));
    produce_numbered(&broker, 0, 0..RECORDS);
    let cap = Retention::max_entries(10_000).at_cap(AtCap::ShrinkWindow);
    let builder = builder(&broker)
        .retention(cap)
        .offset_interval(Duration::ZERO);
    let running = Running::start(builder, Arc::clone(&store), |_| Ok(()));
    running.wait(RECORDS as usize);
    running.wait_for("the cap to be kept", || store.usage().entries <= 10_000);
    assert!(store.usage().entries > 8_000);
    running.stop();
    let last = store.heads()[0].1.unwrap().next.get();
    assert_eq!(last, i64::from(RECORDS));
}
