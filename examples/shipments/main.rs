//! Five orders, sent with copies, a consumer that dies in the middle, a restart, a rewind.
//!
//! Promise: each order is shipped once. Where it stops: shipping is a line in a file, outside the
//! store, so the crash between the effect and its mark cannot be hidden; the handler is told that
//! the order is in doubt, and looks for the idempotency token in the file.
//!
//! ```text
//! cargo run --release --example shipments                           # an embedded broker
//! cargo run --release --example shipments -- --brokers HOST:PORT    # a real one
//! shipments consume --brokers B --topic T --group G --store DIR --shipped FILE \
//!     [--crash-at N] [--session-ms MS]
//! ```

mod consume;
mod story;

use std::error::Error;
use std::path::PathBuf;

/// The command line, taken apart.
#[derive(Default)]
struct Args {
    consume: bool,
    brokers: Option<String>,
    topic: String,
    group: String,
    store: PathBuf,
    shipped: PathBuf,
    /// Dies right after this many orders were shipped, before the last one is marked.
    crash_at: Option<usize>,
    session_ms: String,
}

impl Args {
    fn parse() -> Result<Self, Box<dyn Error>> {
        let mut args = Self {
            topic: "shipments".into(),
            group: "ship-svc".into(),
            session_ms: "6000".into(),
            ..Self::default()
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            if word == "consume" {
                args.consume = true;
                continue;
            }
            let value = words
                .next()
                .ok_or_else(|| format!("{word} wants a value"))?;
            match word.as_str() {
                "--brokers" => args.brokers = Some(value),
                "--topic" => args.topic = value,
                "--group" => args.group = value,
                "--store" => args.store = value.into(),
                "--shipped" => args.shipped = value.into(),
                "--session-ms" => args.session_ms = value,
                "--crash-at" => args.crash_at = Some(value.parse()?),
                _ => return Err(format!("unknown option {word}").into()),
            }
        }
        Ok(args)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let args = Args::parse()?;
    if args.consume {
        consume::consume(&args)
    } else {
        story::tell(args.brokers)
    }
}
