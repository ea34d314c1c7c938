//! New, copy, mismatch, no key.

use idempotent_consumer::key::MissingKey;
use idempotent_consumer::testkit::Produced;
use idempotent_consumer::{Error, Mismatch, key};

use crate::scripted::Scripted;
use crate::support::*;

#[test]
fn copies_in_one_fetch_take_effect_once() {
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    let mut records = vec![("order-1", "a"); 50];
    records.push(("order-2", "b"));
    produce(&broker, 0, &records);
    let (effects, report) = consume(builder(&broker), sled(dir.path()), 2);
    assert_eq!(effects, ["0:0:order-1=a", "0:50:order-2=b"]);
    assert_eq!((report.counts.new, report.counts.duplicate), (2, 49));
}

// C054
#[test]
fn a_copy_in_another_partition_takes_no_effect() {
    let (broker, store) = (broker(2), Scripted::new());
    produce(&broker, 0, &[("order-1", "a")]);
    let running = Running::start(builder(&broker), store, |_| Ok(()));
    running.wait(1);
    produce(&broker, 1, &[("order-1", "a"), ("order-2", "b")]);
    running.wait(2);
    let effects = running.effects.list();
    let report = running.stop();
    assert_eq!(effects, ["0:0:order-1=a", "1:1:order-2=b"]);
    assert_eq!((report.counts.new, report.counts.duplicate), (2, 1));
}

#[test]
fn a_copy_in_another_partition_is_new_where_the_scope_is_the_partition() {
    let (broker, store) = (broker(2), Scripted::new());
    for partition in [0, 1] {
        produce(&broker, partition, &[("order-1", "a"), ("order-1", "a")]);
    }
    let scoped = builder(&broker).scope(key::Scope::Partition);
    let running = Running::start(scoped, store, |_| Ok(()));
    running.wait(2);
    let effects = running.effects.sorted();
    let report = running.stop();
    assert_eq!(effects, ["0:0:order-1=a", "1:0:order-1=a"]);
    assert_eq!(report.counts.new, 2);
}

// C064
#[test]
fn the_same_key_in_two_topics_is_two_orders() {
    let (broker, store) = (broker(1), Scripted::new());
    broker.create_topic("orders-us", 1).unwrap();
    produce(&broker, 0, &[("1", "a")]);
    let record = Produced {
        key: Some(b"1"),
        value: Some(b"a"),
        ..Produced::default()
    };
    broker.produce("orders-us", &[record]).unwrap();
    let both = builder(&broker).topics([TOPIC, "orders-us"]);
    let (effects, report) = consume(both, store, 2);
    assert_eq!(effects.len(), 2);
    assert_eq!(report.counts.new, 2);
}

// C060, C066
#[test]
fn a_known_key_with_another_value_stops_and_names_both_records() {
    let (broker, store) = (broker(2), Scripted::new());
    produce(&broker, 0, &[("other", "x"), ("order-7", "A")]);
    let running = Running::start(builder(&broker), store, |_| Ok(()));
    running.wait(2);
    produce(&broker, 1, &[("order-7", "B"), ("order-8", "C")]);
    let effects = running.effects.clone();
    let error = running.error();
    let Error::Mismatch { at, first } = &error else {
        panic!("{error}")
    };
    assert_eq!(at.to_string(), "orders[1]@0");
    assert_eq!(first.to_string(), "orders[0]@1");
    assert!(error.to_string().contains("orders[0]@1"), "{error}");
    assert_eq!(effects.len(), 2, "nothing behind it is handled");
    let operator = Operator::new(&broker);
    assert_eq!(
        (operator.committed(0), operator.committed(1)),
        (Some(2), None)
    );
}

// C060
#[test]
fn a_known_key_with_another_value_is_skipped_and_counted_where_that_is_the_policy() {
    let (broker, store) = (broker(1), Scripted::new());
    // In the same fetch, where the first mark is not durable yet, and after a restart.
    produce(
        &broker,
        0,
        &[
            ("order-7", "A"),
            ("order-7", "B"),
            ("order-7", "A"),
            ("end", ""),
        ],
    );
    let lenient = || builder(&broker).on_mismatch(Mismatch::TreatAsDuplicate);
    let (effects, report) = consume(lenient(), store.clone(), 2);
    assert_eq!(effects, ["0:0:order-7=A", "0:3:end="]);
    assert_eq!((report.counts.mismatch, report.counts.duplicate), (1, 1));
    produce(&broker, 0, &[("order-7", "C"), ("end-2", "")]);
    let (effects, report) = consume(lenient(), store, 1);
    assert_eq!(effects, ["0:5:end-2="]);
    assert_eq!(report.counts.mismatch, 1);
}

#[test]
fn a_record_without_a_key_stops_and_is_named() {
    let (broker, store) = (broker(1), Scripted::new());
    let keyless = Produced {
        value: Some(b"ping"),
        ..Produced::default()
    };
    produce(&broker, 0, &[("order-1", "a")]);
    broker.produce(TOPIC, &[keyless]).unwrap();
    produce(&broker, 0, &[("order-2", "b")]);
    let running = Running::start(builder(&broker), store, |_| Ok(()));
    let effects = running.effects.clone();
    let error = running.error();
    assert!(matches!(error, Error::MissingKey { .. }), "{error}");
    assert!(error.to_string().contains("orders[0]@1"), "{error}");
    assert_eq!(effects.list(), ["0:0:order-1=a"]);
    assert_eq!(Operator::new(&broker).committed(0), Some(1));
}

// C061
#[test]
fn records_without_a_key_pass_where_that_is_the_policy_and_none_is_taken_for_another() {
    let (broker, store) = (broker(1), Scripted::new());
    let keyless = Produced {
        value: Some(b"ping"),
        ..Produced::default()
    };
    broker.produce(TOPIC, &[keyless, keyless]).unwrap();
    let passing = builder(&broker).on_missing_key(MissingKey::PassThrough);
    let (effects, report) = consume(passing, store.clone(), 2);
    assert_eq!(effects, ["0:0:-=ping", "0:1:-=ping"]);
    assert_eq!((report.counts.missing_key, report.counts.new), (2, 0));
    assert_eq!(store.head(0), Some(2));
    assert_eq!(Operator::new(&broker).committed(0), Some(2));
}

// C019, C006
#[test]
fn a_tombstone_reaches_the_handler_as_no_value_and_is_marked_like_any_other() {
    let (broker, store) = (broker(1), Scripted::new());
    let tombstone = Produced {
        key: Some(b"k1"),
        ..Produced::default()
    };
    produce(&broker, 0, &[("k0", "a")]);
    broker.produce(TOPIC, &[tombstone, tombstone]).unwrap();
    produce(&broker, 0, &[("k2", "b")]);
    let (effects, report) = consume(builder(&broker), store, 3);
    assert_eq!(effects, ["0:0:k0=a", "0:1:k1=-", "0:3:k2=b"]);
    assert_eq!(report.counts.duplicate, 1);
}

#[test]
fn absent_and_empty_are_two_things_for_keys_and_for_values() {
    let (broker, store) = (broker(1), Scripted::new());
    let record = |key, value| Produced {
        key,
        value,
        ..Produced::default()
    };
    let empty = Some(&b""[..]);
    let records = [
        record(empty, Some(b"a")),
        record(None, Some(b"a")),
        record(empty, Some(b"a")),
        record(Some(b"null"), None),
        record(Some(b"empty"), empty),
        // A key that is known with no value, and comes with an empty one, is a mismatch.
        record(Some(b"null"), empty),
    ];
    broker.produce(TOPIC, &records).unwrap();
    let builder = builder(&broker)
        .on_missing_key(MissingKey::PassThrough)
        .on_mismatch(Mismatch::TreatAsDuplicate);
    let running = Running::start(builder, store.clone(), |_| Ok(()));
    running.wait_for("the last record", || store.head(0) == Some(6));
    let effects = running.effects.list();
    let counts = running.stop().counts;
    assert_eq!(effects, ["0:0:=a", "0:1:-=a", "0:3:null=-", "0:4:empty="]);
    assert_eq!(
        (counts.duplicate, counts.mismatch, counts.missing_key),
        (1, 1, 1)
    );
}

// C065
#[test]
fn another_group_on_the_same_store_is_refused_before_it_joins() {
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    produce(&broker, 0, &[("order-1", "a")]);
    consume(builder(&broker), sled(dir.path()), 1);
    let mut audit = config(&broker);
    audit.set("group.id", "audit-svc");
    let refused = builder_with(audit).build(sled(dir.path())).err().unwrap();
    assert!(matches!(refused, Error::Store(_)), "{refused}");
    let text = refused.to_string();
    assert!(
        text.contains("shipping") && text.contains("audit-svc"),
        "{text}"
    );
}
