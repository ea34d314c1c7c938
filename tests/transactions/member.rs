//! A consumer under test, on a thread of its own: it answers each record with one.

use std::thread::JoinHandle;
use std::time::Duration;

use idempotent_consumer::{
    Builder, ClientConfig, Delivery, EffectStore, Error, HandlerResult, IdempotentConsumer, Outbox,
    Outgoing, Report, key,
};
use tokio_util::sync::CancellationToken;

use crate::broker::wait_for;
use crate::support::kafka::Kafka;

pub(crate) fn log() {
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    // Set by the first test of the process.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .try_init();
}

/// A group member's settings; sessions are long, so that a loaded machine ends none.
pub(crate) fn config(kafka: &Kafka, group: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", kafka.bootstrap())
        .set("group.id", group)
        .set("session.timeout.ms", "20000")
        .set("heartbeat.interval.ms", "300");
    config
}

/// The same for a group of the broker's own protocol, which takes no session from its members.
pub(crate) fn config_of(kafka: &Kafka, group: &str, protocol: &[(&str, &str)]) -> ClientConfig {
    let mut config = config(kafka, group);
    for (setting, value) in protocol {
        if *setting == "group.protocol" {
            config.remove("session.timeout.ms");
            config.remove("heartbeat.interval.ms");
        }
        config.set(*setting, *value);
    }
    config
}

pub(crate) fn builder(config: ClientConfig, topic: &str) -> Builder {
    IdempotentConsumer::builder(config)
        .topics([topic])
        .key(key::record_key())
}

pub(crate) struct Member {
    stop: CancellationToken,
    thread: JoinHandle<Result<Report, Error>>,
}

impl Member {
    /// Starts a member that copies each record to a topic.
    pub(crate) fn start(
        builder: Builder,
        store: impl EffectStore<Effects = Outbox>,
        to: &str,
    ) -> Self {
        let to = to.to_owned();
        Self::answering(builder, store, move |record, outbox| {
            outbox.send(Outgoing::copy_of(record, &to));
            Ok(())
        })
    }

    /// Starts a member with a handler of its own.
    pub(crate) fn answering(
        builder: Builder,
        store: impl EffectStore<Effects = Outbox>,
        answer: impl Fn(&Delivery<'_>, &mut Outbox) -> HandlerResult + Send + Sync + 'static,
    ) -> Self {
        log();
        let stop = CancellationToken::new();
        let token = stop.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let consumer = builder.build(store)?;
                let handler =
                    async move |record: &Delivery<'_>, outbox: &mut Outbox| answer(record, outbox);
                consumer.run(handler, token).await
            })
        });
        Self { stop, thread }
    }

    pub(crate) fn wait_until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        wait_for(what, || {
            assert!(!self.thread.is_finished(), "it ended before {what}");
            let holds = holds();
            if !holds {
                std::thread::sleep(Duration::from_millis(50));
            }
            holds
        });
    }

    /// Stops in order and gives the report.
    pub(crate) fn stop(self) -> Report {
        self.stop.cancel();
        self.thread.join().unwrap().unwrap()
    }

    /// Waits until it ends by itself, with an error.
    pub(crate) fn error(self) -> Error {
        wait_for("the end of the member", || self.thread.is_finished());
        self.thread.join().unwrap().unwrap_err()
    }
}
