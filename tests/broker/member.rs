//! A consumer under test, on a thread of its own.

use std::path::Path;
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Duration;

use idempotent_consumer::store::SledStore;
use idempotent_consumer::{
    Builder, ClientConfig, Delivery, EffectStore, Effects, Error, HandlerResult,
    IdempotentConsumer, Report, key,
};
use tokio_util::sync::CancellationToken;

use crate::broker::wait_for;
use crate::history::{Effect, History};
use crate::support::kafka::Kafka;

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Keeps what consumers say, for [`was_logged`]; `RUST_LOG` shows it as well.
struct Keep;

impl std::io::Write for Keep {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        LOG.lock().unwrap().extend_from_slice(line);
        if std::env::var_os("RUST_LOG").is_some() {
            let _ = std::io::stderr().write_all(line);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(crate) fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| "idempotent_consumer=info".into());
    // Set by the first test of the process.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(|| Keep)
        .try_init();
}

/// Whether a line with all of these words was logged.
pub(crate) fn was_logged(words: &[&str]) -> bool {
    let log = LOG.lock().unwrap();
    let text = String::from_utf8_lossy(&log);
    text.lines()
        .any(|line| words.iter().all(|word| line.contains(word)))
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

pub(crate) fn builder(config: ClientConfig, topic: &str) -> Builder {
    IdempotentConsumer::builder(config)
        .topics([topic])
        .key(key::record_key())
        .offset_interval(Duration::from_millis(100))
}

pub(crate) fn sled(path: &Path) -> SledStore {
    SledStore::open(path).unwrap()
}

pub(crate) struct Member {
    history: History,
    stop: CancellationToken,
    thread: JoinHandle<Result<Report, Error>>,
}

impl Member {
    /// Starts a member whose handler notes each record.
    pub(crate) fn start(
        name: &'static str,
        builder: Builder,
        store: impl EffectStore<Effects = Effects>,
        history: &History,
    ) -> Self {
        Self::judging(name, builder, store, history, |_| Ok(()))
    }

    /// As `start`, with a handler that notes only what `judge` lets pass.
    pub(crate) fn judging(
        name: &'static str,
        builder: Builder,
        store: impl EffectStore<Effects = Effects>,
        history: &History,
        judge: impl Fn(&Delivery<'_>) -> HandlerResult + Send + Sync + 'static,
    ) -> Self {
        log();
        let (history, stop) = (history.clone(), CancellationToken::new());
        let (noted, token) = (history.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let consumer = builder.build(store)?;
                let handler = async move |record: &Delivery<'_>, _: &mut _| {
                    judge(record)?;
                    noted.add(Effect {
                        member: name,
                        key: String::from_utf8_lossy(record.key().unwrap_or_default()).into_owned(),
                        partition: record.partition(),
                        offset: record.offset(),
                        in_doubt: record.in_doubt(),
                    });
                    Ok(())
                };
                consumer.run(handler, token).await
            })
        });
        Self {
            history,
            stop,
            thread,
        }
    }

    /// Waits until there are `count` effects, of whichever member.
    pub(crate) fn wait(&self, count: usize) {
        wait_for(
            &format!("{count} effects, there are {}", self.history.len()),
            || {
                assert!(!self.thread.is_finished(), "it ended");
                self.history.len() >= count
            },
        );
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
