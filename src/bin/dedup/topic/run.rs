//! The service: from its settings to its end.

use std::{sync::Arc, time::Duration};

use idempotent_consumer::{
    DeadLetter, IdempotentConsumer, Report, Transactional, store::SledStore,
};
use tokio::{
    net::TcpListener,
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
    time::interval,
};
use tokio_util::sync::CancellationToken;

use super::{
    broker::{self, Output},
    clients,
    config::Config,
    copy::Copy,
    error::Error,
    figures::Figures,
    health::Health,
    serve::{Pages, serve},
    watched::Watched,
};
use crate::place;

const NOT_A_STORE: &str = "is no directory; name one with --store or DEDUP_TOPIC_STORE";
const STORE_NAMES: &str = "--store or DEDUP_TOPIC_STORE";
/// What is left behind at the end is waited for so long: a call to brokers that are gone.
const LEFT_BEHIND: Duration = Duration::from_secs(1);
const UPKEEP: Duration = Duration::from_secs(5);

/// Runs until a signal or a failure.
pub(super) fn run(config: Config) -> Result<(), Error> {
    place::store(&config.store, STORE_NAMES, NOT_A_STORE)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|source| Error::System {
            action: "start",
            source,
        })?;
    let ended = runtime.block_on(service(config));
    Runtime::shutdown_timeout(runtime, LEFT_BEHIND);
    ended
}

async fn service(config: Config) -> Result<(), Error> {
    let health = Arc::new(Health::default());
    let stop = CancellationToken::new();
    // Before anything else: a signal that comes early must count.
    stop_on_signals(&stop, &health)?;
    listen(&config, &health).await?;
    let output = tokio::select! {
        output = broker::look(&config) => output?,
        () = stop.cancelled() => return Ok(()),
    };
    if output.stamps {
        tracing::warn!(
            topic = config.to,
            "timestamps are not kept: the topic has message.timestamp.type=LogAppendTime"
        );
    }
    let copy = Copy {
        to: config.to.clone(),
        partitioning: config.partitioning,
        output,
    };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        from = config.from,
        to = config.to,
        key = config.recipe.name(),
        group = config.group,
        store = %config.store.display(),
        "starting"
    );
    let consumer = consumer(config, output, &health)?;
    let report = consumer.run_handler(copy, stop).await?;
    said(&report);
    Ok(())
}

fn consumer(
    config: Config,
    output: Output,
    health: &Arc<Health>,
) -> Result<IdempotentConsumer<idempotent_consumer::Outbox>, Error> {
    let (consumer, producer) = clients::apart(&config.kafka, output.batch_bytes_max);
    let (assigned, restoring) = (Arc::clone(health), Arc::clone(health));
    let mut builder = IdempotentConsumer::builder(consumer)
        .topics([config.from])
        .key(config.recipe)
        .scope(config.scope)
        .on_missing_key(config.missing_key)
        .on_mismatch(config.mismatch)
        .commit_within(config.commit_within)
        .on_assignment(move |partitions| assigned.assigned(partitions))
        .on_restore(move |progress| {
            let so_far = || format!("at {} of {}", progress.at, progress.to);
            restoring.restoring(&progress.partition, (!progress.done).then(so_far));
        });
    if let Some(limit) = config.drain_limit {
        builder = builder.drain_limit(limit);
    }
    if let Some(topic) = config.dead_letter {
        builder = builder.dead_letter(DeadLetter::to_topic(topic));
    }
    let store = SledStore::open(&config.store)?;
    let store = Transactional::over(store).config(producer);
    Ok(builder.build(Watched::new(store, Arc::clone(health)))?)
}

fn stop_on_signals(stop: &CancellationToken, health: &Arc<Health>) -> Result<(), Error> {
    let catch = |kind| {
        signal(kind).map_err(|source| Error::System {
            action: "wait for signals",
            source,
        })
    };
    let mut terminate = catch(SignalKind::terminate())?;
    let mut interrupt = catch(SignalKind::interrupt())?;
    let (stop, health) = (stop.clone(), Arc::clone(health));
    tokio::spawn(async move {
        let signal = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal, "stopping: what is in hand is written first");
        health.draining();
        stop.cancel();
    });
    Ok(())
}

/// Serves what can be asked for, where that is wanted.
async fn listen(config: &Config, health: &Arc<Health>) -> Result<(), Error> {
    let Some(address) = config.listen else {
        return Ok(());
    };
    let failed = |source| Error::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let figures = Figures::begin().map_err(|reason| Error::System {
        action: "begin to count",
        source: std::io::Error::other(reason),
    })?;
    let figures = Arc::new(figures);
    let pages = Pages {
        health: Arc::clone(health),
        figures: Arc::clone(&figures),
    };
    tokio::spawn(serve(listener, Arc::new(pages)));
    tokio::spawn(async move {
        let mut ticks = interval(UPKEEP);
        loop {
            ticks.tick().await;
            figures.keep_up();
        }
    });
    tracing::info!(address = %bound, "listening: /healthz, /readyz, /metrics");
    Ok(())
}

fn said(report: &Report) {
    let counts = report.counts;
    tracing::info!(
        written = counts.new + counts.missing_key,
        dropped = counts.skipped(),
        dead_lettered = counts.dead_lettered,
        restored = counts.restored,
        "stopped"
    );
}
