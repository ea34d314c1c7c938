//! A consumer under test, on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use idempotent_consumer::store::{PostgresOptions, PostgresStore, SqlEffects};
use idempotent_consumer::testkit::{EmbeddedBroker, Produced};
use idempotent_consumer::{
    Builder, ClientConfig, Delivery, EffectStore, Error, HandlerResult, IdempotentConsumer, Report,
    RetryPolicy, key,
};
use tokio_postgres::Config;
use tokio_util::sync::CancellationToken;

use crate::database::{Database, runtime, wait_for};

pub(crate) const TOPIC: &str = "orders";
pub(crate) const GROUP: &str = "shipping";

pub(crate) fn broker(partitions: i32) -> EmbeddedBroker {
    let broker = EmbeddedBroker::start().unwrap();
    broker.create_topic(TOPIC, partitions).unwrap();
    broker
}

/// Produces keys to one partition, each with itself as the value.
pub(crate) fn produce<K: AsRef<str>>(broker: &EmbeddedBroker, partition: i32, keys: &[K]) {
    let records: Vec<_> = keys
        .iter()
        .map(|key| Produced {
            partition,
            key: Some(key.as_ref().as_bytes()),
            value: Some(key.as_ref().as_bytes()),
            ..Produced::default()
        })
        .collect();
    broker.produce(TOPIC, &records).unwrap();
}

/// `order-0`, `order-1` and so on.
pub(crate) fn numbered(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("order-{number}")).collect()
}

pub(crate) fn builder(bootstrap: &str) -> Builder {
    builder_with(bootstrap, "1500")
}

pub(crate) fn builder_with(bootstrap: &str, session_timeout_ms: &str) -> Builder {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", bootstrap)
        .set("group.id", GROUP)
        // The mock cluster lets a group that was left rest for the session time-out less a second.
        .set("session.timeout.ms", session_timeout_ms)
        .set("heartbeat.interval.ms", "200");
    IdempotentConsumer::builder(config)
        .topics([TOPIC])
        .key(key::record_key())
        .drain_limit(Duration::from_secs(20))
        .offset_interval(Duration::from_millis(100))
        .retry(RetryPolicy::exponential(
            20,
            Duration::from_millis(1),
            Duration::from_millis(50),
        ))
}

pub(crate) fn store(database: &Config) -> PostgresStore {
    PostgresOptions::default()
        .connect(database.clone())
        .unwrap()
}

/// Waits until each member has a partition, and gives the keys that this took; `greeted` counts what
/// each has handled. The first to join has all partitions for a while: only when every member has
/// handled something is there a partition for each.
pub(crate) fn a_partition_for_each(
    database: &Database,
    broker: &EmbeddedBroker,
    partitions: i32,
    greeted: &[Arc<AtomicUsize>],
) -> Vec<String> {
    let mut keys = Vec::new();
    wait_for("a partition for each member", || {
        for partition in 0..partitions {
            let key = format!("hello-{}", keys.len());
            produce(broker, partition, &[&key]);
            keys.push(key);
        }
        database.wait_for_effects(keys.len());
        greeted
            .iter()
            .all(|greeted| greeted.load(Ordering::SeqCst) > 0)
    });
    keys
}

/// The record's key as text.
pub(crate) fn key_of(record: &Delivery<'_>) -> String {
    String::from_utf8_lossy(record.key().unwrap_or_default()).into_owned()
}

/// The effect that the history is read from: see `database`.
pub(crate) async fn note(record: &Delivery<'_>, sql: &mut SqlEffects) -> HandlerResult {
    let process = i32::try_from(std::process::id())?;
    let attempt = i32::try_from(record.attempt())?;
    sql.execute(
        "INSERT INTO effects (process, key, place, at, token, in_doubt, attempt) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[
            &process,
            &key_of(record),
            &record.partition(),
            &record.offset(),
            &record.token(),
            &record.in_doubt(),
            &attempt,
        ],
    )
    .await?;
    Ok(())
}

pub(crate) struct Member {
    stop: CancellationToken,
    thread: JoinHandle<Result<Report, Error>>,
}

impl Member {
    /// Starts a consumer whose handler writes an effect for each record.
    pub(crate) fn start(builder: Builder, database: &Config) -> Self {
        Self::running(builder, database, note)
    }

    /// The same with a handler of the test's own.
    pub(crate) fn running<F>(builder: Builder, database: &Config, handler: F) -> Self
    where
        F: AsyncFn(&Delivery<'_>, &mut SqlEffects) -> HandlerResult + Send + Sync + 'static,
    {
        Self::with_store(builder, store(database), handler)
    }

    /// The same with a store that is open.
    pub(crate) fn with_store<S, F>(builder: Builder, store: S, handler: F) -> Self
    where
        S: EffectStore<Effects = SqlEffects>,
        F: AsyncFn(&Delivery<'_>, &mut SqlEffects) -> HandlerResult + Send + Sync + 'static,
    {
        log();
        let stop = CancellationToken::new();
        let token = stop.clone();
        let thread = std::thread::spawn(move || {
            runtime().block_on(async {
                let consumer = builder.build(store)?;
                consumer.run(handler, token).await
            })
        });
        Self { stop, thread }
    }

    /// Waits for a condition while it runs.
    pub(crate) fn wait_for(&self, what: &str, mut holds: impl FnMut() -> bool) {
        wait_for(what, || {
            let holds = holds();
            assert!(
                holds || !self.thread.is_finished(),
                "it ended before {what}"
            );
            holds
        });
    }

    /// Tells it to stop.
    pub(crate) fn cancel(&self) {
        self.stop.cancel();
    }

    /// Stops in order and gives the report.
    pub(crate) fn stop(self) -> Report {
        self.cancel();
        self.end().unwrap()
    }

    /// Waits until it has ended by itself.
    pub(crate) fn end(self) -> Result<Report, Error> {
        wait_for("the end of a member", || self.thread.is_finished());
        self.thread.join().unwrap()
    }
}

/// `RUST_LOG=info` shows what the consumers say.
fn log() {
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    // Set by the first test of the process.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_test_writer()
        .try_init();
}
