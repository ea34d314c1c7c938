//! Which part may name what.

use crate::tree::{Place, has_any, lines, lines_but, no_breach, says};

const ALL_CODE: [&str; 4] = ["src/", "tests/", "examples/", "benches/"];

/// What each room may not know. Stages meet in `record`, `error` and `store`; only `pipeline` and
/// `consumer` know all of them.
const UNKNOWN: [(&str, &str); 9] = [
    (
        "src/store/",
        "source pipeline claim handler engine consumer audit retry testkit",
    ),
    (
        "src/key/",
        "source pipeline claim handler engine consumer audit retry testkit store",
    ),
    (
        "src/claim/",
        "source pipeline handler engine consumer audit retry testkit",
    ),
    (
        "src/handler/",
        "source pipeline claim engine consumer audit retry testkit store",
    ),
    (
        "src/engine/",
        "source pipeline handler consumer audit retry testkit",
    ),
    (
        "src/source/",
        "pipeline claim handler consumer retry testkit store key",
    ),
    (
        "src/dead_letter/",
        "pipeline claim handler engine consumer retry testkit store key",
    ),
    (
        "src/retry/",
        "source pipeline claim handler engine consumer audit testkit store key",
    ),
    (
        "src/testkit/",
        "source pipeline claim handler engine consumer audit retry",
    ),
];

#[test]
fn only_the_kafka_source_the_dead_letters_producer_and_the_test_kit_name_rdkafka() {
    let allowed = [
        "src/source/kafka/",
        "src/dead_letter/kafka.rs",
        "src/dead_letter/kafka_errors.rs",
        "src/outbox/kafka.rs",
        "src/outbox/kafka_errors.rs",
        "src/testkit/",
        // A binary's look at its topics.
        "src/bin/dedup/topic/broker.rs",
    ];
    let named = |line: &str| says(line, "rdkafka") || says(line, "rdkafka_sys");
    no_breach(
        "rdkafka is named elsewhere",
        &lines_but(&["src/"], &allowed, named),
    );
}

#[test]
fn only_its_own_store_names_an_engine() {
    let engines = [
        ("sled", "src/store/sled/"),
        ("redb", "src/store/redb/"),
        ("tokio_postgres", "src/store/postgres/"),
    ];
    for (engine, room) in engines {
        let [path, import] = [format!("{engine}::"), format!("use {engine}")];
        // The store's module has the engine's name.
        let modules = [format!("self::{engine}"), format!("crate::store::{engine}")];
        let named = |line: &str| {
            has_any(line, &[&*path, &*import])
                && !modules.iter().any(|module| line.contains(module))
        };
        let what = format!("{engine} is named elsewhere");
        no_breach(&what, &lines_but(&["src/"], &[room], named));
    }
}

#[test]
fn a_room_knows_only_the_rooms_below_it() {
    let mut breaches: Vec<Place> = Vec::new();
    for (room, unknown) in UNKNOWN {
        let paths: Vec<_> = unknown
            .split(' ')
            .map(|name| format!("crate::{name}"))
            .collect();
        // What handlers of a store with transactions get is that store's.
        let allowed = ["src/store/postgres/effects.rs"];
        breaches.extend(lines_but(&[room], &allowed, |line| {
            paths.iter().any(|path| says(line, path))
        }));
    }
    no_breach("a room is known that should not be", &breaches);
}

#[test]
fn the_binaries_live_on_public_names() {
    // They are crates of their own, so the compiler sees to it, unless it is talked round. Two
    // binaries may share a module that lies beside them.
    let ways_round = ["\"../../", "include!", "doc(hidden)"];
    no_breach(
        "a way round what is public",
        &lines(&["src/"], |line| has_any(line, &ways_round)),
    );
}

#[test]
fn unsafe_code_stands_where_librdkafka_is_called_and_nowhere_else() {
    let kit = "src/testkit/broker.rs";
    let allowed = [
        "src/source/kafka/batch.rs",
        "src/source/kafka/commit.rs",
        "src/source/kafka/membership.rs",
        kit,
    ];
    let is_unsafe = |line: &str| says(line, "unsafe") || says(line, "unsafe_code");
    no_breach(
        "unsafe code elsewhere",
        &lines_but(&ALL_CODE, &allowed, is_unsafe),
    );
    // One call of the mock cluster's is missing in rdkafka.
    let places = lines(&[kit], |line| says(line, "unsafe"));
    assert!(places.len() <= 1, "{kit} has more than one unsafe place");
}

// C070, C071
#[test]
fn no_decision_depends_on_the_wall_clock() {
    // It may be set back or far ahead. Limits are measured with a clock that only goes forward.
    // Retention needs a date, and gets it from one place, where it is asked for once.
    let allowed = ["src/clock.rs"];
    let clock = |line: &str| says(line, "SystemTime") || says(line, "UNIX_EPOCH");
    no_breach(
        "the wall clock is asked",
        &lines_but(&["src/"], &allowed, clock),
    );
}

#[test]
fn metrics_are_recorded_in_one_file() {
    // And in another by the service that shows them.
    let allowed = ["src/metrics.rs", "src/bin/dedup/topic/figures.rs"];
    let macros = ["counter!", "gauge!", "histogram!"];
    let recorded = |line: &str| has_any(line, &macros);
    no_breach(
        "a metric is recorded elsewhere",
        &lines_but(&["src/"], &allowed, recorded),
    );
}
