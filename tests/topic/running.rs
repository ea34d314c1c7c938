//! What can be asked of it while it runs, and how it ends.

use std::sync::atomic::{AtomicBool, Ordering};

use rdkafka::producer::Producer as _;

use crate::service::{self, Bench};
use crate::written::{self, Sent};
use crate::{admin, broker, feed};

/// Sends events one by one, until it is told to end; gives how many.
fn trickle(bench: &Bench<'_>, done: &AtomicBool) -> usize {
    let producer = feed::producer(bench.kafka.bootstrap(), &[]);
    let mut sent = 0;
    while !done.load(Ordering::Relaxed) {
        for _ in 0..20 {
            let id = sent.to_string();
            let record = Sent {
                key: Some(b"k"),
                value: Some(id.as_bytes()),
                headers: &[("event-id", Some(&id))],
                ..Sent::default()
            };
            written::send(&producer, &bench.from, &record);
            sent += 1;
        }
        producer.flush(broker::DEADLINE).unwrap();
    }
    sent
}

#[test]
fn either_signal_ends_it_in_order_and_the_next_start_goes_on_behind_it() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "signals", 1);
    let to = admin::topic(&kafka, "signals-once", 1);
    let bench = Bench::new(&kafka, from, to);
    let done = AtomicBool::new(false);
    let sent = std::thread::scope(|scope| {
        let feeding = scope.spawn(|| trickle(&bench, &done));
        for signal in ["TERM", "INT"] {
            let before = kafka.end_offsets(&bench.to)[0];
            let mut service = bench.start("a");
            broker::wait_for("records", || {
                service.assert_running();
                kafka.end_offsets(&bench.to)[0] > before + 100
            });
            service.signal(signal);
            let status = service.end();
            let said = service.said();
            assert_eq!(status.code(), Some(0), "{said}");
            for words in [&format!("SIG{signal}"), "stopped", "written="] {
                assert!(said.contains(words), "no {words:?} in {said}");
            }
        }
        done.store(true, Ordering::Relaxed);
        feeding.join().unwrap()
    });
    let mut service = bench.start("a");
    bench.wait_caught_up(&mut service);
    let said = service.stop();
    // What was in hand was marked: nothing is in doubt, and nothing came again.
    assert!(said.contains("in_doubt=false"), "{said}");
    let lines = written::all(&kafka, &bench.to, sent);
    for (number, line) in lines.iter().enumerate() {
        assert_eq!(line.value, number.to_string());
    }
}

#[test]
fn the_pages_tell_whether_it_lives_works_and_how_much() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "pages", 3);
    let to = admin::topic(&kafka, "pages-once", 1);
    let bench = Bench::new(&kafka, from, to);
    let mut service = bench.start_with("a", &["--listen", "0"]);
    let address = service.address();
    assert!(address.ip().is_loopback(), "{address}");
    broker::wait_for("ready", || {
        service.assert_running();
        service::get(address, "/readyz").0 == "HTTP/1.1 200 OK"
    });
    let events = [
        ("event-id", Some("1")),
        ("event-id", Some("1")),
        ("event-id", Some("2")),
    ];
    let events = events.map(|event| [event]);
    let sent = events.each_ref().map(|headers| Sent {
        value: Some(b"v"),
        headers,
        ..Sent::default()
    });
    written::send_all(&kafka, &bench.from, &sent);
    bench.wait_caught_up(&mut service);
    broker::wait_for("the figures", || {
        let (status, figures) = service::get(address, "/metrics");
        assert_eq!(status, "HTTP/1.1 200 OK");
        [
            "idempotent_consumer_records_total{decision=\"new\"} 2\n",
            "idempotent_consumer_records_total{decision=\"duplicate\"} 1\n",
            "idempotent_consumer_commit_seconds_count ",
            "dedup_topic_assigned_partitions 3\n",
            "dedup_topic_ready 1\n",
        ]
        .iter()
        .all(|line| figures.contains(line))
    });
    service.stop();
}

#[test]
fn where_the_brokers_are_gone_it_is_not_ready_and_goes_on_when_they_are_back() {
    let Some(kafka) = broker::alone() else {
        return;
    };
    let from = admin::topic(&kafka, "outage", 1);
    let to = admin::topic(&kafka, "outage-once", 1);
    let bench = Bench::new(&kafka, from, to);
    let record = |headers| Sent {
        value: Some(b"v"),
        headers,
        ..Sent::default()
    };
    written::send_all(&kafka, &bench.from, &[record(&[("event-id", Some("1"))])]);
    let mut service = bench.start_with(
        "a",
        &["--listen", "0", "-X", "reconnect.backoff.max.ms=500"],
    );
    let address = service.address();
    let ready = |yes: bool| {
        broker::wait_for(&format!("ready: {yes}"), || {
            service::get(address, "/readyz").0.contains("200") == yes
        });
    };
    ready(true);
    kafka.stop();
    ready(false);
    let (alive, _) = service::get(address, "/healthz");
    assert_eq!(alive, "HTTP/1.1 200 OK");
    kafka.resume();
    ready(true);
    let copy = record(&[("event-id", Some("1"))]);
    written::send_all(
        &kafka,
        &bench.from,
        &[copy, record(&[("event-id", Some("2"))])],
    );
    bench.wait_caught_up(&mut service);
    service.stop();
    written::all(&kafka, &bench.to, 2);
}

#[test]
fn each_line_of_a_json_log_is_an_object_the_last_error_too() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let from = admin::topic(&kafka, "json", 1);
    let to = admin::topic(&kafka, "json-once", 1);
    let bench = Bench::new(&kafka, from, to);
    written::send_all(&kafka, &bench.from, &[Sent::default()]);
    let mut service = bench.start_with("a", &["--log", "json"]);
    assert_eq!(service.end().code(), Some(1));
    let said = service.said();
    let lines: Vec<serde_json::Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let has = |level: &str, words: &str| {
        lines.iter().any(|line| {
            line["level"] == level
                && line["message"]
                    .as_str()
                    .is_some_and(|it| it.contains(words))
        })
    };
    assert!(has("INFO", "starting"), "{said}");
    assert!(has("ERROR", "has no key"), "{said}");
    assert!(
        lines.iter().all(|line| line["timestamp"].is_string()),
        "{said}"
    );
}
