//! A consumer under test: what it handled, and waiting for it.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use idempotent_consumer::store::SledStore;
use idempotent_consumer::testkit::{EmbeddedBroker, Produced};
use idempotent_consumer::{
    Builder, ClientConfig, Delivery, EffectStore, Error, HandlerResult, IdempotentConsumer, Report,
    RetryPolicy, key,
};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::{Offset, TopicPartitionList};
use tokio_util::sync::CancellationToken;

pub(crate) const TOPIC: &str = "orders";
/// Far beyond what any step takes on a busy machine, so that only what hangs reaches it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(180);

/// `RUST_LOG=info` shows what the consumers say.
pub(crate) fn log() {
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    // Set by the first test of the process.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_test_writer()
        .try_init();
}

pub(crate) fn broker(partitions: i32) -> EmbeddedBroker {
    let broker = EmbeddedBroker::start().unwrap();
    broker.create_topic(TOPIC, partitions).unwrap();
    broker
}

/// Produces records with a key and a value.
pub(crate) fn produce(broker: &EmbeddedBroker, partition: i32, records: &[(&str, &str)]) {
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

/// Produces records `order-{n}`, each with its own value.
pub(crate) fn produce_numbered(
    broker: &EmbeddedBroker,
    partition: i32,
    numbers: std::ops::Range<u32>,
) {
    let names: Vec<_> = numbers.map(|n| format!("order-{n}")).collect();
    let records: Vec<_> = names.iter().map(|n| (n.as_str(), n.as_str())).collect();
    produce(broker, partition, &records);
}

pub(crate) fn config(broker: &EmbeddedBroker) -> ClientConfig {
    config_at(broker.bootstrap_servers())
}

pub(crate) fn config_at(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "shipping")
        // The mock cluster lets a group that was left rest for the session time-out less a second.
        .set("session.timeout.ms", "1500")
        .set("heartbeat.interval.ms", "300");
    config
}

pub(crate) fn builder_with(config: ClientConfig) -> Builder {
    IdempotentConsumer::builder(config)
        .topics([TOPIC])
        .key(key::record_key())
        .drain_limit(Duration::from_secs(20))
        .retry(RetryPolicy::exponential(
            2,
            Duration::from_millis(1),
            Duration::from_millis(1),
        ))
}

pub(crate) fn builder(broker: &EmbeddedBroker) -> Builder {
    builder_with(config(broker))
}

pub(crate) fn sled(path: &Path) -> SledStore {
    SledStore::open(path).unwrap()
}

/// Asks and sets what the group has committed, from outside, as an operator's tool does.
pub(crate) struct Operator(BaseConsumer);

impl Operator {
    pub(crate) fn new(broker: &EmbeddedBroker) -> Self {
        Self(
            ClientConfig::new()
                .set("bootstrap.servers", broker.bootstrap_servers())
                .set("group.id", "shipping")
                .create()
                .unwrap(),
        )
    }

    /// The committed offset of a partition, if there is one.
    pub(crate) fn committed(&self, partition: i32) -> Option<i64> {
        let mut list = TopicPartitionList::new();
        list.add_partition(TOPIC, partition);
        let answer = self.0.committed_offsets(list, DEADLINE).unwrap();
        match answer.elements()[0].offset() {
            Offset::Offset(next) => Some(next),
            _ => None,
        }
    }

    /// Sets the group's offset. The group must have no members.
    pub(crate) fn set(&self, partition: i32, next: i64) {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(TOPIC, partition, Offset::Offset(next))
            .unwrap();
        let commit = || self.0.commit(&list, rdkafka::consumer::CommitMode::Sync);
        // The mock cluster refuses for as long as the group rests after its last member left.
        wait_for("the group to take an offset", || commit().is_ok());
        assert_eq!(self.committed(partition), Some(next));
    }
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// What handlers did, in order: `partition:offset:key=value`.
#[derive(Clone, Default)]
pub(crate) struct Effects(Arc<Mutex<Vec<String>>>);

impl Effects {
    pub(crate) fn add(&self, effect: impl Into<String>) {
        self.0.lock().unwrap().push(effect.into());
    }

    pub(crate) fn list(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// In an order that does not depend on which partition was first.
    pub(crate) fn sorted(&self) -> Vec<String> {
        let mut list = self.list();
        list.sort();
        list
    }
}

/// How a record stands in [`Effects`].
pub(crate) fn effect(delivery: &Delivery<'_>) -> String {
    let text = |bytes: Option<&[u8]>| {
        bytes.map_or("-".to_owned(), |b| String::from_utf8_lossy(b).into_owned())
    };
    format!(
        "{}:{}:{}={}",
        delivery.partition(),
        delivery.offset(),
        text(delivery.key()),
        text(delivery.value()),
    )
}

/// Waits for a condition.
pub(crate) fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < end, "waited {DEADLINE:?} for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A door that opens once: to hold a handler, and to let it go.
#[derive(Clone, Default)]
pub(crate) struct Gate(CancellationToken);

impl Gate {
    pub(crate) fn open(&self) {
        self.0.cancel();
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.is_cancelled()
    }

    pub(crate) fn pass(&self) {
        wait_for("a gate to open", || self.is_open());
    }

    /// As `pass`, for a handler that waits in a future.
    pub(crate) async fn passed(&self) {
        self.0.cancelled().await;
    }
}

/// A consumer that runs on a thread of its own.
pub(crate) struct Running {
    pub(crate) effects: Effects,
    pub(crate) stop: CancellationToken,
    thread: std::thread::JoinHandle<Result<Report, Error>>,
}

impl Running {
    /// Starts a consumer whose handler answers as `judge` says, and notes each record that is done.
    pub(crate) fn start(
        builder: Builder,
        store: impl EffectStore<Effects = idempotent_consumer::Effects>,
        judge: impl Fn(&Delivery<'_>) -> HandlerResult + Send + Sync + 'static,
    ) -> Self {
        Self::with(builder, store, move |delivery, _| judge(delivery))
    }

    /// As `start`, with the effects that are recorded in the store.
    pub(crate) fn with(
        builder: Builder,
        store: impl EffectStore<Effects = idempotent_consumer::Effects>,
        judge: impl Fn(&Delivery<'_>, &mut idempotent_consumer::Effects) -> HandlerResult
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self::run(
            builder,
            store,
            async move |delivery: &Delivery<'_>, effects: &mut _| judge(delivery, effects),
        )
    }

    /// As `with`, for a handler that waits.
    pub(crate) fn run<F>(
        builder: Builder,
        store: impl EffectStore<Effects = idempotent_consumer::Effects>,
        handler: F,
    ) -> Self
    where
        F: AsyncFn(&Delivery<'_>, &mut idempotent_consumer::Effects) -> HandlerResult
            + Send
            + Sync
            + 'static,
    {
        log();
        let effects = Effects::default();
        let (noted, stop) = (effects.clone(), CancellationToken::new());
        let token = stop.clone();
        let thread = std::thread::spawn(move || {
            runtime().block_on(async {
                let consumer = builder.build(store)?;
                consumer
                    .run(
                        async move |delivery, effects| {
                            handler(delivery, effects).await?;
                            noted.add(effect(delivery));
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
    pub(crate) fn wait(&self, count: usize) {
        self.wait_for(&format!("{count} effects"), || self.effects.len() >= count);
    }

    /// Waits for a condition while it runs.
    pub(crate) fn wait_for(&self, what: &str, mut holds: impl FnMut() -> bool) {
        wait_for(what, || {
            // Asked first: it may do what is waited for, and end, between two questions.
            let has_ended = self.has_ended();
            let holds = holds();
            assert!(
                holds || !has_ended,
                "it ended before {what}, after {:?}",
                self.effects.list()
            );
            holds
        });
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until it has ended by itself.
    pub(crate) fn end(self) -> Result<Report, Error> {
        wait_for("the end", || self.thread.is_finished());
        self.thread.join().unwrap()
    }

    /// Stops in order and gives the report.
    pub(crate) fn stop(self) -> Report {
        self.stop.cancel();
        self.end().unwrap()
    }

    /// Stops one whose drain limit is so short that a busy machine may miss it here too, which is
    /// then said.
    pub(crate) fn stop_hasty(self) {
        self.stop.cancel();
        match self.end() {
            Ok(_) | Err(Error::DrainTimeout { .. } | Error::Source(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits until it ends by itself, with an error.
    pub(crate) fn error(self) -> Error {
        self.end().unwrap_err()
    }
}

/// Consumes until `count` effects are there, and stops.
pub(crate) fn consume(
    builder: Builder,
    store: impl EffectStore<Effects = idempotent_consumer::Effects>,
    count: usize,
) -> (Vec<String>, Report) {
    let running = Running::start(builder, store, |_| Ok(()));
    running.wait(count);
    let effects = running.effects.clone();
    let report = running.stop();
    (effects.list(), report)
}
