//! What is said of librdkafka's producers, asked of librdkafka itself. Nothing is connected.

use idempotent_consumer::audit::{self, Client};
use idempotent_consumer::{ClientConfig, producer};
use rdkafka::producer::BaseProducer;

type Settings = Vec<(&'static str, &'static str)>;

fn config(settings: &[(&str, &str)]) -> ClientConfig {
    let mut config = ClientConfig::new();
    // Nobody listens at this port.
    config.set("bootstrap.servers", "127.0.0.1:1");
    for (setting, value) in settings {
        config.set(*setting, *value);
    }
    config
}

fn starts(config: &ClientConfig) -> bool {
    config.create::<BaseProducer>().is_ok()
}

const VALUES: &[(&str, &str)] = &[
    ("acks", "1"),
    ("request.required.acks", "all"),
    ("retries", "0"),
    ("message.send.max.retries", "3"),
    ("max.in.flight", "1"),
    ("max.in.flight.requests.per.connection", "6"),
    ("delivery.timeout.ms", "0"),
    ("delivery.timeout.ms", "40000"),
    ("message.timeout.ms", "100000"),
    ("delivery.timeout.ms", "60000"),
    ("delivery.timeout.ms", "60001"),
    ("linger.ms", "20000"),
    ("linger.ms", "40000"),
    ("queue.buffering.max.ms", "65000"),
    ("request.timeout.ms", "70000"),
    ("socket.timeout.ms", "30000"),
    ("socket.timeout.ms", "60100"),
    ("socket.timeout.ms", "60101"),
    ("transaction.timeout.ms", "10000"),
    ("transaction.timeout.ms", "90000"),
    ("queuing.strategy", "lifo"),
    ("queue.buffering.backpressure.threshold", "2"),
    ("enable.gapless.guarantee", "true"),
    ("delivery.report.only.error", "true"),
];

/// Each two values, with and without idempotence and a transaction's name.
fn combinations() -> impl Iterator<Item = Settings> {
    let front = [
        vec![],
        vec![("enable.idempotence", "true")],
        vec![("enable.idempotence", "false")],
        vec![("transactional.id", "t")],
        vec![("enable.idempotence", "true"), ("transactional.id", "t")],
        vec![("enable.idempotence", "false"), ("transactional.id", "t")],
    ];
    front.into_iter().flat_map(|front| {
        (0..VALUES.len()).flat_map(move |one| {
            let front = front.clone();
            (one..VALUES.len()).map(move |other| {
                let mut settings = front.clone();
                settings.extend([VALUES[one], VALUES[other]]);
                settings
            })
        })
    })
}

// C088
#[test]
fn a_guarded_configuration_starts_and_what_librdkafka_refuses_is_refused_with_that_reason() {
    let (mut started, mut refused) = (0, 0);
    for settings in combinations() {
        let mut plain = config(&settings);
        // Its default. Where no setting is a topic's, librdkafka looks at time-outs that are topics'
        // with the first record, not at the start.
        plain.set("partitioner", "consistent_random");
        let findings = audit::producer(Client::Librdkafka, plain.config_map());
        let said = findings
            .iter()
            .any(|finding| finding.reason.contains("the client refuses"));
        // Under two names a setting has one value now and the other then.
        let chance = findings
            .iter()
            .any(|finding| finding.reason.contains("left to chance"));
        if !chance {
            assert_eq!(starts(&plain), !said, "{settings:?}: {findings:#?}");
        }
        match producer::guarded(plain) {
            Ok(guarded) => {
                assert!(starts(&guarded), "{settings:?} is not guarded");
                started += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(started > 50 && refused > 50, "{started} and {refused}");
}

#[test]
fn what_is_missing_is_set_and_what_was_set_is_kept() {
    let given = [
        ("topic.acks", "-1"),
        ("max.in.flight", "3"),
        ("message.send.max.retries", "7"),
        ("client.id", "billing"),
        ("sasl.username", "billing"),
    ];
    let plain = config(&given);
    let guarded = producer::guarded(plain.clone()).unwrap();
    let mut expected = plain;
    expected.set("enable.idempotence", "true");
    assert_eq!(guarded.config_map(), expected.config_map());

    let filled = producer::guarded(config(&[])).unwrap();
    let expected = config(&[
        ("enable.idempotence", "true"),
        ("acks", "all"),
        ("retries", "2147483647"),
        ("max.in.flight.requests.per.connection", "5"),
    ]);
    assert_eq!(filled.config_map(), expected.config_map());
    let again = producer::guarded(filled.clone()).unwrap();
    assert_eq!(again.config_map(), filled.config_map());
}

#[test]
fn all_that_is_at_fault_is_told_at_once_and_no_password_with_it() {
    let wrong = [
        ("enable.idempotence", "true"),
        ("acks", "1"),
        ("max.in.flight", "10"),
        ("delivery.timeout.ms", "1000"),
        ("compression.type", "tight"),
        ("sasl.pasword", "hunter2"),
        ("retries", "many"),
    ];
    let refused = producer::guarded(config(&wrong)).unwrap_err();
    let mut settings: Vec<_> = refused.0.iter().map(|finding| &finding.setting).collect();
    settings.sort_unstable();
    assert_eq!(
        settings,
        [
            "acks",
            "compression.type",
            "delivery.timeout.ms",
            "max.in.flight",
            "retries",
            "sasl.pasword"
        ]
    );
    let text = refused.to_string();
    for (setting, value) in wrong
        .iter()
        .skip(1)
        .filter(|(name, _)| *name != "sasl.pasword")
    {
        assert!(text.contains(&format!("{setting}={value}")), "{text}");
    }
    assert!(!text.contains("hunter2"), "{text}");

    let nowhere = producer::guarded(ClientConfig::new()).unwrap_err();
    assert!(nowhere.to_string().contains("bootstrap.servers is not set"));
}

/// The table of `docs/producer.md`, which the unit tests compare with what the rules take.
#[test]
fn the_documented_defaults_are_those_that_librdkafka_has() {
    let document = std::fs::read_to_string("docs/producer.md").unwrap();
    // It tells a topic's settings only where there is one of them.
    let native = config(&[("partitioner", "consistent_random")])
        .create_native_config()
        .unwrap();
    let mut compared = 0;
    for row in document.lines().filter(|row| row.starts_with("| `")) {
        let cells: Vec<_> = row.split(" | ").collect();
        let [names, librdkafka, _java] = cells[..] else {
            continue;
        };
        let Some(default) = librdkafka.strip_prefix('`') else {
            continue;
        };
        for name in names.split('`').skip(1).step_by(2) {
            let in_force = native.get(name).unwrap();
            assert_eq!(in_force, default.trim_end_matches('`'), "{name}");
            compared += 1;
        }
    }
    assert!(compared >= 17, "{compared} defaults found in the document");
}
