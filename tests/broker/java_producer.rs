//! What is said of the Java client's producers, asked of the Java client itself.

use std::process::{Command, Output};

use idempotent_consumer::audit::{self, Client};

use crate::support::kafka::{Kafka, repository};
use crate::{admin, broker};

type Settings = &'static [(&'static str, &'static str)];

/// Runs a class of Kafka's jars.
fn run(class: &str, args: &[String]) -> Output {
    Command::new("timeout")
        .arg("120")
        .arg(repository().join("scripts/lib/kafka/run-class"))
        .arg(class)
        .args(args)
        .env("KAFKA_LOG_LEVEL", "INFO")
        .output()
        .unwrap()
}

/// What becomes of a producer's idempotence.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Refused,
    /// Switched off without an error.
    Silent,
    Off,
    On,
}

/// By the settings that a producer logs, when it sends one record. The tool sets none by itself.
fn of_the_client(kafka: &Kafka, topic: &str, settings: Settings) -> Verdict {
    let mut args: Vec<_> = ["--bootstrap-server", kafka.bootstrap(), "--topic", topic]
        .iter()
        .chain(&[
            "--num-records",
            "1",
            "--throughput",
            "-1",
            "--record-size",
            "1",
        ])
        .chain(&["--command-property", "client.id=asked"])
        .map(ToString::to_string)
        .collect();
    args.extend(
        settings
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    let output = run("org.apache.kafka.tools.ProducerPerformance", &args);
    let printed = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&printed);
    let has = |piece: &str| said.contains(piece);
    if has("ConfigException") {
        return Verdict::Refused;
    }
    assert!(output.status.success(), "{settings:?}: {said}");
    match (
        has("\tenable.idempotence = true\n"),
        has("\tenable.idempotence = false\n"),
        has("Idempotence will be disabled because"),
    ) {
        (true, false, false) => Verdict::On,
        (false, true, true) => Verdict::Silent,
        (false, true, false) => Verdict::Off,
        _ => panic!("{settings:?}: {said}"),
    }
}

fn of_the_audit(settings: Settings) -> Verdict {
    let broker = ("bootstrap.servers", "localhost:9092");
    let findings = audit::producer(Client::Java, settings.iter().copied().chain([broker]));
    let has = |piece: &str| {
        findings
            .iter()
            .any(|finding| finding.reason.contains(piece))
    };
    if has("the client refuses") || has("does not take such a value") {
        Verdict::Refused
    } else if has("switched off") {
        Verdict::Silent
    } else if findings
        .iter()
        .any(|finding| finding.setting == "enable.idempotence")
    {
        Verdict::Off
    } else {
        Verdict::On
    }
}

const ON: (&str, &str) = ("enable.idempotence", "true");
const OFF: (&str, &str) = ("enable.idempotence", "false");
const TRANSACTIONAL: (&str, &str) = ("transactional.id", "t");
const IN_FLIGHT: &str = "max.in.flight.requests.per.connection";

const ASKED: [(Settings, Verdict); 14] = [
    (&[], Verdict::On),
    (&[("acks", "1")], Verdict::Silent),
    (&[("retries", "0")], Verdict::Silent),
    (&[(IN_FLIGHT, "6")], Verdict::Refused),
    (&[ON, ("acks", "1")], Verdict::Refused),
    (&[ON, ("retries", "0")], Verdict::Refused),
    (&[OFF, (IN_FLIGHT, "6")], Verdict::Off),
    (&[("enable.idempotence", "ture")], Verdict::Refused),
    (&[("delivery.timeout.ms", "30004")], Verdict::Refused),
    (&[("request.timeout.ms", "200000")], Verdict::On),
    (&[OFF, TRANSACTIONAL], Verdict::Refused),
    (&[TRANSACTIONAL, ("acks", "1")], Verdict::Refused),
    (&[("max.in.flight", "6")], Verdict::On),
    (
        &[
            TRANSACTIONAL,
            ("transaction.two.phase.commit.enable", "true"),
            ("transaction.timeout.ms", "60000"),
        ],
        Verdict::Refused,
    ),
];

// C088
#[test]
fn the_java_client_refuses_or_gives_up_idempotence_where_the_audit_says_so() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic(&kafka, "java-asked", 1);
    for two in ASKED.chunks(2) {
        std::thread::scope(|scope| {
            for (settings, expected) in two {
                let (kafka, topic) = (&kafka, &topic);
                scope.spawn(move || {
                    assert_eq!(
                        of_the_client(kafka, topic, settings),
                        *expected,
                        "{settings:?}"
                    );
                    assert_eq!(of_the_audit(settings), *expected, "{settings:?}");
                });
            }
        });
    }
}

/// The table of `docs/producer.md`, which the unit tests compare with what the rules take.
#[test]
fn the_documented_defaults_are_those_that_the_java_client_documents_itself() {
    let Some(_kafka) = broker::shared() else {
        return;
    };
    let output = run("org.apache.kafka.clients.producer.ProducerConfig", &[]);
    let own = String::from_utf8(output.stdout).unwrap();
    let document = std::fs::read_to_string(repository().join("docs/producer.md")).unwrap();
    let mut compared = 0;
    for row in document.lines().filter(|row| row.starts_with("| `")) {
        let cells: Vec<_> = row.trim_end_matches(" |").split(" | ").collect();
        let [names, _librdkafka, java] = cells[..] else {
            continue;
        };
        let name = names.split('`').nth(1).unwrap();
        let default = own
            .split_once(&format!("<a id=\"{name}\">"))
            .and_then(|(_, rest)| rest.split_once("<tr><th>Default:</th><td>"))
            .and_then(|(_, rest)| rest.split_once("</td>"))
            // A number is followed by what it is in words.
            .map(|(default, _)| default.split(" (").next().unwrap());
        let expected = match java {
            "no such setting" => None,
            "none" => Some("null"),
            value => Some(value.trim_matches('`')),
        };
        assert_eq!(default, expected, "{name}");
        compared += 1;
    }
    assert!(compared >= 15, "{compared} settings found in the document");
}
