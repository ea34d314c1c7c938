//! What happens, a line an event, on standard error.

use std::io;

use tracing_subscriber::{Layer as _, filter::Targets, layer::SubscriberExt as _};

pub(super) use tracing::Level;

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Format {
    Text,
    Json,
}

/// From here on everything is said in this format. Said once a process.
pub(super) fn begin(format: Format, level: Level) {
    // Other crates' lines are nobody's: the consumer passes on what librdkafka says.
    let ours = Targets::new()
        .with_target("dedup", level)
        .with_target("idempotent_consumer", level);
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_target(false)
        .with_writer(io::stderr);
    let layer = match format {
        Format::Text => layer.boxed(),
        Format::Json => layer.json().flatten_event(true).boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(ours));
    // Refused where there is one already, which then says it all.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
