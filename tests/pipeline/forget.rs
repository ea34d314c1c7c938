//! What was forgotten is handled once more, by a corrected handler, and nothing else is. Case C067.

use std::path::Path;
use std::time::Duration;

use idempotent_consumer::store::{Forget, Forgotten};
use idempotent_consumer::testkit::EmbeddedBroker;
use idempotent_consumer::{Error, TopicPartition};

use crate::support::*;

fn partition(number: i32) -> TopicPartition {
    TopicPartition::new(TOPIC, number)
}

fn forget(path: &Path, what: &Forget) -> Forgotten {
    sled(path).forget(what).unwrap()
}

/// Handles what is there, which must be `expected`, and one record more, which shows that the rest
/// was passed over. Then nothing is left, and another start handles nothing.
fn handles(broker: &EmbeddedBroker, path: &Path, next: i64, expected: &[&str]) -> (u64, u64) {
    let running = Running::start(builder(broker), sled(path), |_| Ok(()));
    running.wait(expected.len());
    produce(broker, 0, &[(&format!("later-{next}"), "x")]);
    running.wait(expected.len() + 1);
    let effects = running.effects.clone();
    let report = running.stop();
    let (last, before) = effects
        .list()
        .split_last()
        .map(|(l, b)| (l.clone(), b.to_vec()))
        .unwrap();
    assert_eq!(
        (last, &before[..]),
        (format!("0:{next}:later-{next}=x"), &owned(expected)[..])
    );
    assert_eq!(Operator::new(broker).committed(0), Some(next + 1));
    let open = sled(path).inspect().partitions;
    assert!(open.iter().all(|one| one.gaps.is_empty()), "{open:?}");
    (report.counts.redelivery, report.counts.duplicate)
}

fn owned(list: &[&str]) -> Vec<String> {
    list.iter().map(|one| (*one).to_owned()).collect()
}

#[test]
fn a_forgotten_key_is_handled_again_with_the_group_where_it_was() {
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    produce_numbered(&broker, 0, 0..5);
    consume(builder(&broker), sled(dir.path()), 5);
    let forgotten = forget(dir.path(), &Forget::key(TOPIC, "order-2"));
    assert_eq!(forgotten.partitions[0].position.get(), 2);
    let (_, duplicate) = handles(&broker, dir.path(), 5, &["0:2:order-2=order-2"]);
    assert_eq!(duplicate, 0);
    // Once: the next start knows it.
    handles(&broker, dir.path(), 6, &[]);
}

/// Handles `count` records while the group stays at the start. The embedded broker lets nobody set
/// a group back that had members.
fn handle_untold(broker: &EmbeddedBroker, path: &Path, count: usize) {
    Operator::new(broker).set(0, 0);
    broker.refuse_commits(&["UNKNOWN"; 1_000]);
    // Long enough for its lanes to end also on a busy machine; the refusals take all of it.
    let hasty = builder(broker).drain_limit(Duration::from_secs(2));
    let running = Running::start(hasty, sled(path), |_| Ok(()));
    running.wait(count);
    running.stop.cancel();
    let refused = running.error();
    assert!(matches!(refused, Error::Source(_)), "{refused}");
    broker.accept_commits();
    assert_eq!(Operator::new(broker).committed(0), Some(0));
}

#[test]
fn a_forgotten_range_is_handled_again_with_the_group_set_back() {
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    produce_numbered(&broker, 0, 0..5);
    handle_untold(&broker, dir.path(), 5);
    forget(dir.path(), &Forget::offsets(&partition(0), 1..3));
    let again = ["0:1:order-1=order-1", "0:2:order-2=order-2"];
    let (redelivery, duplicate) = handles(&broker, dir.path(), 5, &again);
    assert_eq!((redelivery, duplicate), (3, 0));
    handles(&broker, dir.path(), 6, &[]);
}

#[test]
fn copies_of_a_forgotten_key_stay_copies() {
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    let records = [("a", "1"), ("b", "1"), ("a", "1"), ("b", "1"), ("c", "1")];
    produce(&broker, 0, &records);
    handle_untold(&broker, dir.path(), 3);
    forget(dir.path(), &Forget::key(TOPIC, "a"));
    handles(&broker, dir.path(), 5, &["0:0:a=1"]);
    // A whole range decides anew: the copy in it has its first outside.
    forget(dir.path(), &Forget::offsets(&partition(0), 1..3));
    let (_, duplicate) = handles(&broker, dir.path(), 6, &["0:1:b=1"]);
    assert_eq!(duplicate, 1);
}

#[test]
fn a_copy_that_is_passed_before_the_forgotten_record_is_no_sign_of_another_topic() {
    let (broker, dir) = (broker(2), tempfile::tempdir().unwrap());
    produce(&broker, 0, &[("first", "1"), ("copied", "1")]);
    consume(builder(&broker), sled(dir.path()), 2);
    produce(
        &broker,
        1,
        &[("early", "1"), ("copied", "1"), ("late", "1")],
    );
    let (_, report) = consume(builder(&broker), sled(dir.path()), 2);
    assert_eq!((report.counts.new, report.counts.duplicate), (2, 1));
    for key in ["first", "copied", "early", "late"] {
        forget(dir.path(), &Forget::key(TOPIC, key));
    }
    let gate = Gate::default();
    let held = gate.clone();
    let running = Running::start(builder(&broker), sled(dir.path()), move |delivery| {
        if delivery.key() == Some(b"first") {
            held.pass();
        }
        Ok(())
    });
    // Partition 1 is through with the copy while its first has not come again.
    running.wait(2);
    gate.open();
    running.wait(4);
    let effects = running.effects.clone();
    running.stop();
    let expected = ["0:0:first=1", "0:1:copied=1", "1:0:early=1", "1:2:late=1"];
    assert_eq!(effects.sorted(), expected);
}

#[test]
fn a_forgotten_topic_is_handled_again_from_its_start_in_order() {
    let (broker, dir) = (broker(2), tempfile::tempdir().unwrap());
    for partition in [0, 1] {
        let first = u32::try_from(partition).unwrap() * 10;
        produce_numbered(&broker, partition, first..first + 5);
    }
    let (mut first, _) = consume(builder(&broker), sled(dir.path()), 10);
    let forgotten = forget(dir.path(), &Forget::topic(TOPIC));
    assert_eq!(forgotten.keys(), 10);
    // The first of them fails once more: nothing of the partition goes past it.
    let failing = Running::start(
        builder(&broker),
        sled(dir.path()),
        |_| Err("not yet".into()),
    );
    failing.error();
    let (mut again, report) = consume(builder(&broker), sled(dir.path()), 10);
    let of_one: Vec<_> = again.iter().filter(|one| one.starts_with("0:")).collect();
    assert!(of_one.is_sorted(), "{of_one:?}");
    first.sort();
    again.sort();
    assert_eq!((again, report.counts.new), (first, 10));
}

#[test]
fn a_handler_that_was_corrected_answers_copies_with_what_it_records_now() {
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    produce(&broker, 0, &[("a", "1"), ("b", "1")]);
    let record = |what: &'static str| {
        move |_: &idempotent_consumer::Delivery<'_>, effects: &mut idempotent_consumer::Effects| {
            effects.record(&what)?;
            Ok(())
        }
    };
    let wrong = Running::with(builder(&broker), sled(dir.path()), record("wrong"));
    wrong.wait(2);
    wrong.stop();
    forget(dir.path(), &Forget::key(TOPIC, "a"));
    let shown = Effects::default();
    let noted = shown.clone();
    let builder = builder(&broker).on_duplicate(move |copy, result| {
        let result = result.map(String::from_utf8_lossy);
        noted.add(format!("{}: {}", copy.offset(), result.unwrap_or_default()));
    });
    let right = Running::with(builder, sled(dir.path()), record("right"));
    right.wait(1);
    produce(&broker, 0, &[("a", "1"), ("b", "1")]);
    right.wait_for("two copies", || shown.len() == 2);
    right.stop();
    assert_eq!(shown.list(), ["2: \"right\"", "3: \"wrong\""]);
}
