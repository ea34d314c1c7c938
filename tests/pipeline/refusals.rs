//! What `build` refuses.

use std::time::Duration;

use idempotent_consumer::store::MemoryStore;
use idempotent_consumer::{
    Builder, ClientConfig, EffectStore, Error, IdempotentConsumer, Retention, Transactional, key,
};

/// A broker that is not there: what is refused is refused before anybody is called.
fn config() -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", "127.0.0.1:1")
        .set("group.id", "shipping");
    config
}

fn builder(config: ClientConfig) -> Builder {
    IdempotentConsumer::builder(config)
        .topics(["orders"])
        .key(key::record_key())
}

fn refused(builder: Builder) -> String {
    refused_over(MemoryStore::new(), builder)
}

fn refused_over(store: impl EffectStore, builder: Builder) -> String {
    match builder.build(store).err() {
        Some(error @ Error::Refused(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn letters_from_a_topic_that_is_not_read_are_refused_by_its_name() {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", "localhost:9092")
        .set("group.id", "g");
    for topic in ["orders.DTL", ""] {
        let text = refused(builder(config.clone()).replay_from([topic]));
        assert!(text.contains("replay_from"), "{text}");
        assert!(text.contains("in `topics` too"), "{text}");
    }
    let pattern = builder(config).topics(["^orders.*"]);
    let pattern = pattern.replay_from(["orders.DLT"]);
    assert!(pattern.build(MemoryStore::new()).is_ok());
}

// C001, C090
#[test]
fn each_setting_that_would_break_the_promise_is_refused_with_its_fix() {
    let bad = [
        ("enable.auto.commit", "true"),
        ("auto.commit.enable", "true"),
        ("enable.auto.offset.store", "true"),
        ("isolation.level", "read_uncommitted"),
        ("offset.store.method", "file"),
        ("enable.partition.eof", "true"),
        ("check.crcs", "false"),
    ];
    for (setting, value) in bad {
        let mut config = config();
        config.set(setting, value);
        let text = refused(builder(config));
        assert!(text.contains(&format!("{setting}={value}: ")), "{text}");
        assert!(text.contains("; remove it"), "{text}");
    }
    let mut all = config();
    for (setting, value) in bad {
        all.set(setting, value);
    }
    let text = refused(IdempotentConsumer::builder(all).uncommitted_records_max(0));
    for name in
        bad.map(|(name, _)| name)
            .into_iter()
            .chain(["topics", "key", "uncommitted_records_max"])
    {
        assert!(
            text.contains(&format!("\n  {name}")),
            "{name} is missing: {text}"
        );
    }
}

#[test]
fn what_is_missing_is_named() {
    let text = refused(IdempotentConsumer::builder(ClientConfig::new()));
    for name in ["group.id", "bootstrap.servers", "topics", "key"] {
        assert!(text.contains(&format!("{name} is not set")), "{text}");
    }
    let mut empty = config();
    empty.set("group.id", "");
    assert!(refused(builder(empty)).contains("group.id"));
}

#[test]
fn numbers_out_of_their_bounds_are_refused_not_cut() {
    for records in [0, 1_001, usize::MAX] {
        let text = refused(builder(config()).uncommitted_records_max(records));
        assert!(text.contains("between 1 and 1000"), "{text}");
    }
    // What is sent is void with its transaction, so that more may be in one.
    let transactional = Transactional::over(MemoryStore::new());
    let many = builder(config()).uncommitted_records_max(8_001);
    let text = refused_over(transactional, many);
    assert!(text.contains("between 1 and 8000"), "{text}");
    for limit in [Duration::MAX, Duration::from_secs(3601)] {
        let text = refused(
            builder(config())
                .commit_within(limit)
                .offset_interval(limit)
                .drain_limit(limit),
        );
        for name in ["commit_within", "offset_interval", "drain_limit"] {
            assert!(text.contains(&format!("\n  {name}=")), "{text}");
        }
    }
}

#[test]
fn a_setting_that_librdkafka_does_not_know_ends_the_run_with_its_name() {
    let mut odd = config();
    odd.set("no.such.setting", "1");
    let consumer = builder(odd).build(MemoryStore::new()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let shutdown = tokio_util::sync::CancellationToken::new();
    let ended = runtime.block_on(consumer.run(async |_, _| Ok(()), shutdown));
    let error = ended.unwrap_err();
    assert!(error.to_string().contains("no.such.setting"), "{error}");
}

#[test]
fn a_retention_that_would_break_the_promise_is_refused_by_its_name() {
    let refused = |retention| refused(builder(config()).retention(retention));
    let short = Retention::for_duration(Duration::from_secs(59));
    let text = refused(
        short
            .and_max_entries(9_999)
            .and_max_bytes(1)
            .sudden_percent_max(0),
    );
    for setting in [
        "for_duration",
        "max_entries",
        "max_bytes",
        "sudden_percent_max",
    ] {
        assert!(text.contains(&format!("Retention::{setting}")), "{text}");
    }
    let least = Retention::for_duration(Duration::from_secs(60)).and_max_entries(10_000);
    let built = builder(config()).retention(least).build(MemoryStore::new());
    assert!(built.is_ok());
}
