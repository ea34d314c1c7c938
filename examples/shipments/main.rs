//! Five orders, sent with copies, a consumer that dies in the middle, a restart, a rewind.
//!
//! Promise: each order is shipped once. Where it stops: shipping is a line in a file, outside the
//! store, so the crash between the effect and its mark cannot be hidden; the handler is told that
//! the order is in doubt, and looks for the idempotency token in the file.
//!
//! ```text
//! cargo run --release --example shipments                           # an embedded broker
//! cargo run --release --example shipments -- --brokers HOST:PORT    # a real one
//! cargo run --release --example shipments -- --help                 # the service alone, too
//! ```

mod consume;
mod story;

use std::path::PathBuf;
use std::process::ExitCode;

const EXIT_USAGE: u8 = 2;

const HELP: &str = "\
usage:
  shipments [--brokers HOST:PORT]
      tell the story, on an embedded broker unless a real one is named
  shipments consume [--brokers HOST:PORT] [--topic T] [--group G]
                    --store DIR --shipped FILE [--crash-at N] [--session-ms MS]
      be the service alone, until standard input ends (default broker:
      localhost:9092, topic: shipments, group: ship-svc, session: 6000 ms)

exit status: 0 done, 1 failed, 2 the command line is wrong
";

/// The command line, taken apart.
#[derive(Default)]
struct Args {
    brokers: Option<String>,
    topic: String,
    group: String,
    store: PathBuf,
    shipped: PathBuf,
    /// Dies right after this many orders were shipped, before the last one is marked.
    crash_at: Option<usize>,
    session_ms: String,
}

/// What a command line asks for.
enum Call {
    Tell(Args),
    Consume(Args),
    Help,
}

impl Args {
    fn parse() -> Result<Call, String> {
        let mut args = Self {
            topic: "shipments".into(),
            group: "ship-svc".into(),
            session_ms: "6000".into(),
            ..Self::default()
        };
        let mut consume = false;
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "-h" | "--help" => return Ok(Call::Help),
                "consume" => consume = true,
                "--brokers" => args.brokers = Some(value()?),
                "--topic" => args.topic = value()?,
                "--group" => args.group = value()?,
                "--store" => args.store = value()?.into(),
                "--shipped" => args.shipped = value()?.into(),
                "--session-ms" => args.session_ms = value()?,
                "--crash-at" => args.crash_at = Some(number(&value()?)?),
                _ => return Err(format!("unknown option {word}")),
            }
        }
        if consume && (args.store.as_os_str().is_empty() || args.shipped.as_os_str().is_empty()) {
            return Err("consume needs --store DIR and --shipped FILE".into());
        }
        Ok(if consume {
            Call::Consume(args)
        } else {
            Call::Tell(args)
        })
    }
}

fn number(value: &str) -> Result<usize, String> {
    value
        .parse()
        .map_err(|_| format!("--crash-at {value}: a whole number is needed"))
}

fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let done = match Args::parse() {
        Ok(Call::Help) => {
            print!("{HELP}");
            Ok(())
        }
        Ok(Call::Consume(args)) => consume::consume(&args),
        Ok(Call::Tell(args)) => story::tell(args.brokers),
        Err(error) => {
            eprintln!("shipments: {error}; see --help");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shipments: {error}");
            ExitCode::FAILURE
        }
    }
}
