mod cases;

use std::fs;

use self::cases::{CASES, Case};
use super::Client::{Java, Librdkafka};
use super::known::KNOWN;
use super::rules::RULES;
use super::{Client, Finding, Settings, producer};

const BROKER: (&str, &str) = ("bootstrap.servers", "localhost:9092");
const IDEMPOTENT: (&str, &str) = ("enable.idempotence", "true");
const NOT: (&str, &str) = ("enable.idempotence", "false");
const IN_FLIGHT: &str = "max.in.flight.requests.per.connection";

fn found(client: Client, settings: &[(&str, &str)]) -> Vec<Finding> {
    producer(client, settings.iter().copied().chain([BROKER]))
}

/// Without their reasons.
fn said(findings: &[Finding]) -> Vec<String> {
    let texts = findings.iter().map(ToString::to_string);
    texts
        .map(|text| text.split(": ").next().unwrap().to_owned())
        .collect()
}

// C088
#[test]
fn each_conflict_is_found_and_names_every_setting_of_it_with_its_value() {
    for (client, settings, expected) in CASES {
        let said = said(&found(*client, settings));
        assert!(
            said.contains(&(*expected).to_owned()),
            "{client:?} {settings:?}: {said:?} without {expected:?}"
        );
    }
}

#[test]
fn each_rule_has_a_case_for_each_of_its_clients() {
    for rule in RULES {
        for client in [Librdkafka, Java] {
            let concerns = rule.client.is_none_or(|only| only == client);
            let broken = |(of, settings, _): &&Case| {
                *of == client && rule.is_broken(&Settings::new(client, settings.iter().copied()))
            };
            let cases = CASES.iter().filter(broken).count();
            assert_eq!(
                cases > 0,
                concerns,
                "{client:?} {:?}: {}",
                rule.settings,
                rule.reason
            );
        }
    }
}

// C088
#[test]
fn where_idempotence_was_not_asked_for_the_java_client_is_said_to_drop_it_in_silence() {
    for silent in [("acks", "1"), ("retries", "0")] {
        let reasons = |settings: &[(&str, &str)]| -> Vec<_> {
            let findings = found(Java, settings).into_iter();
            findings.map(|finding| finding.reason).collect()
        };
        let [reason] = reasons(&[silent])[..] else {
            panic!("{silent:?} is one finding")
        };
        assert!(reason.contains("switched off"), "{reason}");
        let [reason] = reasons(&[silent, IDEMPOTENT])[..] else {
            panic!("{silent:?} is one finding")
        };
        assert!(reason.contains("the client refuses"), "{reason}");
    }
}

#[test]
fn defaults_are_judged_by_their_client() {
    assert_eq!(found(Java, &[]), []);
    assert_eq!(
        said(&found(Librdkafka, &[])),
        [
            "enable.idempotence is not set",
            "enable.idempotence is not set beside max.in.flight.requests.per.connection=1000000 \
             (default) and retries=2147483647 (default)",
        ]
    );
    let none = producer(Java, []);
    assert_eq!(said(&none), ["bootstrap.servers is not set"]);
}

#[test]
fn what_is_sound_is_no_finding() {
    let sound: [(Client, &[(&str, &str)]); 10] = [
        (Librdkafka, &[IDEMPOTENT]),
        (Librdkafka, &[("transactional.id", "t")]),
        (
            Librdkafka,
            &[
                ("enable.idempotence", "T"),
                ("acks", "-1"),
                ("max.in.flight", "5"),
            ],
        ),
        (
            Librdkafka,
            &[IDEMPOTENT, ("linger.ms", "0.5"), ("retries", "1")],
        ),
        (Librdkafka, &[IDEMPOTENT, ("delivery.timeout.ms", "30005")]),
        // The same twice leaves nothing to chance.
        (
            Librdkafka,
            &[IDEMPOTENT, ("acks", "all"), ("topic.acks", "all")],
        ),
        (Java, &[IDEMPOTENT, ("acks", " all "), (IN_FLIGHT, "1")]),
        // Here the client raises its delivery.timeout.ms.
        (Java, &[("request.timeout.ms", "200000")]),
        (
            Java,
            &[
                ("transactional.id", "t"),
                ("transaction.timeout.ms", "1000"),
            ],
        ),
        (Java, &[("delivery.timeout.ms", "30005")]),
    ];
    for (client, settings) in sound {
        assert_eq!(found(client, settings), [], "{client:?} {settings:?}");
    }
}

#[test]
fn without_retries_or_with_one_request_in_flight_nothing_changes_its_order() {
    for settings in [[NOT, ("retries", "0")], [NOT, ("max.in.flight", "1")]] {
        let said = said(&found(Librdkafka, &settings));
        assert!(!said.iter().any(|text| text.contains("beside")), "{said:?}");
    }
}

#[test]
fn a_value_that_no_client_reads_is_named_and_leads_to_nothing_else() {
    let unread: [(Client, &str, &str); 8] = [
        // As the article has it.
        (Java, "enable.idempotence", "ture"),
        (Java, "enable.idempotence", "1"),
        (Librdkafka, "enable.idempotence", "yes"),
        (Librdkafka, "acks", "quorum"),
        (Java, "retries", "-1"),
        (Java, "linger.ms", "0.5"),
        (Librdkafka, "linger.ms", "NaN"),
        (Librdkafka, IN_FLIGHT, "five"),
    ];
    for (client, setting, value) in unread {
        let findings = found(client, &[(setting, value)]);
        let named = findings.iter().filter(|finding| {
            finding.setting == setting && finding.value.as_deref() == Some(value)
        });
        let reasons: Vec<_> = named.map(|finding| finding.reason).collect();
        assert!(
            reasons.contains(&"the client does not take such a value"),
            "{setting}={value}: {findings:?}"
        );
    }
    assert_eq!(found(Java, &[("enable.idempotence", "ture")]).len(), 1);
}

#[test]
fn one_setting_under_two_names_and_names_of_the_other_client_are_found() {
    let twice = [
        IDEMPOTENT,
        ("retries", "0"),
        ("message.send.max.retries", "3"),
    ];
    let said_of = said(&found(Librdkafka, &twice));
    assert!(
        said_of.contains(&"message.send.max.retries=3 beside retries=0".to_owned()),
        "{said_of:?}"
    );
    for name in [
        "max.in.flight",
        "message.timeout.ms",
        "topic.acks",
        "socket.timeout.ms",
    ] {
        let findings = found(Java, &[(name, "1")]);
        assert_eq!(said(&findings), [format!("{name}=1")]);
    }
}

#[test]
fn the_document_has_every_setting_with_both_defaults_and_every_rule() {
    let document = fs::read_to_string("docs/producer.md").unwrap();
    let cell = |default: Option<&str>| match default {
        None => "no such setting".to_owned(),
        Some("") => "none".to_owned(),
        Some(value) => format!("`{value}`"),
    };
    for known in KNOWN {
        let names = [known.name]
            .into_iter()
            .chain(known.aliases.iter().copied());
        let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
        let row = format!(
            "| {} | {} | {} |",
            names.join(", "),
            cell(known.librdkafka),
            cell(known.java)
        );
        assert!(document.contains(&row), "docs/producer.md without: {row}");
    }
    for rule in RULES {
        let names: Vec<_> = rule
            .settings
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        let client = match rule.client {
            None => "both",
            Some(Librdkafka) => "librdkafka",
            Some(Java) => "Java",
        };
        let row = format!("| {client} | {} | ", names.join(", "));
        let same = |other: &&super::rules::Rule| {
            other.settings == rule.settings && other.client == rule.client
        };
        let rules = RULES.iter().filter(same).count();
        let rows = document.matches(&row).count();
        assert_eq!(rows, rules, "docs/producer.md, rows: {row}");
    }
}
