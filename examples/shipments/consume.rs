//! The shipping service: this is what a user of the crate writes.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idempotent_consumer::store::SledStore;
use idempotent_consumer::{ClientConfig, Delivery, HandlerResult, IdempotentConsumer, key};
use tokio_util::sync::CancellationToken;

use crate::Args;

/// Ships orders by writing them to a file.
struct Shipping {
    shipped: PathBuf,
    count: AtomicUsize,
    crash_at: Option<usize>,
}

impl Shipping {
    fn ship(&self, order: &Delivery<'_>) -> HandlerResult {
        let token = order.token();
        let name = String::from_utf8_lossy(order.value().unwrap_or_default());
        // After a crash, and only then, it may have been shipped already: ask the other side.
        if order.in_doubt() && was_shipped(&self.shipped, &token)? {
            return Ok(());
        }
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.shipped)?;
        writeln!(file, "{token} {name}")?;
        file.sync_data()?;
        if self.crash_at == Some(self.count.fetch_add(1, Ordering::Relaxed) + 1) {
            // The worst moment: the effect has happened, its mark has not.
            std::process::abort();
        }
        Ok(())
    }
}

fn was_shipped(shipped: &Path, token: &str) -> std::io::Result<bool> {
    match fs::read_to_string(shipped) {
        Ok(lines) => Ok(lines.lines().any(|line| line.starts_with(token))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Consumes until its standard input ends, or SIGINT or SIGTERM comes; then prints what was
/// decided.
#[tokio::main]
pub(crate) async fn consume(args: &Args) -> Result<(), Box<dyn Error>> {
    let mut config = ClientConfig::new();
    config
        .set(
            "bootstrap.servers",
            args.brokers.as_deref().unwrap_or("localhost:9092"),
        )
        .set("group.id", &args.group)
        .set("session.timeout.ms", &args.session_ms)
        .set("heartbeat.interval.ms", "300");
    let consumer = IdempotentConsumer::builder(config)
        .topics([args.topic.as_str()])
        .key(key::value())
        .offset_interval(Duration::from_millis(100))
        .build(SledStore::open(&args.store)?)?;
    let shipping = Shipping {
        shipped: args.shipped.clone(),
        count: AtomicUsize::new(0),
        crash_at: args.crash_at,
    };
    let shutdown = CancellationToken::new();
    stop_on_signals_or_end_of_input(shutdown.clone());
    let report = consumer
        .run(async move |order, _effects| shipping.ship(order), shutdown)
        .await?;
    let counts = report.counts;
    println!(
        "new={} redelivery={} duplicate={} in_doubt={}",
        counts.new, counts.redelivery, counts.duplicate, counts.in_doubt
    );
    Ok(())
}

fn stop_on_signals_or_end_of_input(shutdown: CancellationToken) {
    let by_input = shutdown.clone();
    std::thread::spawn(move || {
        let _ = File::open("/dev/stdin").and_then(|mut input| input.read_to_end(&mut Vec::new()));
        by_input.cancel();
    });
    tokio::spawn(async move {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut int), Ok(mut term)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
        ) else {
            return;
        };
        tokio::select! { _ = int.recv() => {}, _ = term.recv() => {} }
        shutdown.cancel();
    });
}
