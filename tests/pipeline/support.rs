//! A consumer under test: what it handled, and waiting for it.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use idempotent_consumer::store::{SledStore, Store};
use idempotent_consumer::testkit::{EmbeddedBroker, Produced};
use idempotent_consumer::{
    Builder, ClientConfig, Error, HandlerResult, IdempotentConsumer, Report, key,
};
use tokio_util::sync::CancellationToken;

pub const TOPIC: &str = "orders";
const DEADLINE: Duration = Duration::from_secs(30);

/// `RUST_LOG=info` shows what the consumers say.
fn log() {
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    // Set by the first test of the process.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_test_writer()
        .try_init();
}

pub fn broker(partitions: i32) -> EmbeddedBroker {
    let broker = EmbeddedBroker::start().unwrap();
    broker.create_topic(TOPIC, partitions).unwrap();
    broker
}

/// Produces records with a key and a value.
pub fn produce(broker: &EmbeddedBroker, partition: i32, records: &[(&str, &str)]) {
    let records: Vec<_> = records
        .iter()
        .map(|(key, value)| Produced {
            partition,
            key: Some(key.as_bytes()),
            value: Some(value.as_bytes()),
            ..Produced::default()
        })
        .collect();
    broker.produce(TOPIC, &records).unwrap();
}

pub fn config(broker: &EmbeddedBroker) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", broker.bootstrap_servers())
        .set("group.id", "shipping")
        // The mock cluster lets a group that was left rest for the session time-out less a second.
        .set("session.timeout.ms", "1500")
        .set("heartbeat.interval.ms", "300");
    config
}

pub fn builder(broker: &EmbeddedBroker) -> Builder {
    IdempotentConsumer::builder(config(broker))
        .topics([TOPIC])
        .key(key::record_key())
}

pub fn sled(path: &Path) -> SledStore {
    SledStore::open(path).unwrap()
}

/// What handlers did, in order: `partition:offset:key=value`.
#[derive(Clone, Default)]
pub struct Effects(Arc<Mutex<Vec<String>>>);

impl Effects {
    pub fn add(&self, effect: String) {
        self.0.lock().unwrap().push(effect);
    }

    pub fn list(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Waits for a condition.
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < end, "waited {DEADLINE:?} for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A consumer that runs on a thread of its own.
pub struct Running {
    pub effects: Effects,
    stop: CancellationToken,
    thread: std::thread::JoinHandle<Result<Report, Error>>,
}

impl Running {
    /// Starts a consumer whose handler notes each record and then answers as `judge` says.
    pub fn start(
        builder: Builder,
        store: impl Store,
        judge: impl Fn(&idempotent_consumer::Delivery<'_>) -> HandlerResult + Send + Sync + 'static,
    ) -> Self {
        log();
        let effects = Effects::default();
        let (noted, stop) = (effects.clone(), CancellationToken::new());
        let token = stop.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let consumer = builder.build(store)?;
                consumer
                    .run(
                        async move |delivery, _effects| {
                            let text = |bytes: Option<&[u8]>| {
                                bytes.map(|b| String::from_utf8_lossy(b).into_owned())
                            };
                            let (key, value) = (text(delivery.key()), text(delivery.value()));
                            judge(delivery)?;
                            noted.add(format!(
                                "{}:{}:{}={}",
                                delivery.partition(),
                                delivery.offset(),
                                key.as_deref().unwrap_or("-"),
                                value.as_deref().unwrap_or("-"),
                            ));
                            Ok(())
                        },
                        token,
                    )
                    .await
            })
        });
        Self {
            effects,
            stop,
            thread,
        }
    }

    /// Waits until there are `count` effects.
    pub fn wait(&self, count: usize) {
        wait_for(&format!("{count} effects"), || {
            assert!(
                !self.thread.is_finished(),
                "it ended after {:?}",
                self.effects.list()
            );
            self.effects.list().len() >= count
        });
    }

    /// Stops in order and gives the report.
    pub fn stop(self) -> Report {
        self.stop.cancel();
        self.thread.join().unwrap().unwrap()
    }

    /// Waits until it ends by itself, with an error.
    pub fn error(self) -> Error {
        let end = Instant::now() + DEADLINE;
        while !self.thread.is_finished() {
            assert!(Instant::now() < end, "still running");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.thread.join().unwrap().unwrap_err()
    }
}

/// Consumes until `count` effects are there, and stops.
pub fn consume(builder: Builder, store: impl Store, count: usize) -> (Vec<String>, Report) {
    let running = Running::start(builder, store, |_| Ok(()));
    running.wait(count);
    let effects = running.effects.clone();
    let report = running.stop();
    (effects.list(), report)
}
