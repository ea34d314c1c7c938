//! A real Kafka, a handler that does nothing: our consumer against a raw `StreamConsumer`.
//!
//! `scripts/bench` starts a broker for it; or `KAFKA_BOOTSTRAP=host:port cargo bench --bench
//! end_to_end --features testkit [-- SECTION...]`. Sections: `throughput` (the default), `latency`,
//! `handler`, `restore`. Environment: `BENCH_RECORDS` (1,000,000), `BENCH_ROUNDS` (5),
//! `BENCH_PARTITIONS` (1,4,16), `BENCH_COPIES` (0,1,100), `BENCH_ROWS` (all; numbers from 0, the
//! first of which the others are compared with).
//!
//! Each run has a group, and where it has a store a store, of its own. The clock starts when the
//! first record has been handed over, so that joining the group counts for nobody. It stops for
//! the raw consumer when the last one has been, and for ours when the last mark is durable.

#[path = "../support/mod.rs"]
mod support;

mod handler;
mod latency;
mod ours;
mod raw;
mod restore;
mod throughput;
mod topic;

use std::time::Duration;

use support::{Outcome, setting};

/// For one run. A consumer that stops getting records must not stop the whole bench.
const RUN_LIMIT: Duration = Duration::from_secs(300);
const SECTIONS: [&str; 4] = ["throughput", "latency", "handler", "restore"];

/// What the sections share.
pub(crate) struct Bench {
    bootstrap: String,
    records: usize,
    rounds: usize,
    /// As a service would have it: the handlers' futures and the raw consumer live in it.
    runtime: tokio::runtime::Runtime,
}

fn main() -> Outcome<()> {
    let Ok(bootstrap) = std::env::var("KAFKA_BOOTSTRAP") else {
        let said = "end_to_end: KAFKA_BOOTSTRAP is not set: run scripts/bench, which starts a \
                    broker, or name a running one as host:port";
        if std::env::var_os("CI").is_some() {
            return Err(said.into());
        }
        eprintln!("SKIPPED {said}");
        return Ok(());
    };
    // Cargo says `--bench`.
    let mut sections: Vec<_> = std::env::args().skip(1).collect();
    sections.retain(|section| section != "--bench");
    if sections.is_empty() {
        sections.push(SECTIONS[0].to_owned());
    }
    if let Some(unknown) = sections
        .iter()
        .find(|name| !SECTIONS.contains(&name.as_str()))
    {
        return Err(format!("no section {unknown}: choose from {SECTIONS:?}").into());
    }
    let bench = Bench {
        bootstrap,
        records: setting("BENCH_RECORDS", 1_000_000)?,
        rounds: setting("BENCH_ROUNDS", 5)?,
        runtime: tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?,
    };
    for section in &sections {
        match section.as_str() {
            "latency" => latency::run(&bench)?,
            "handler" => handler::run(&bench)?,
            "restore" => restore::run(&bench)?,
            _ => throughput::run(&bench)?,
        }
    }
    Ok(())
}

/// Numbers from the environment, parted by commas, or the defaults.
pub(crate) fn numbers(name: &str, default: &[usize]) -> Outcome<Vec<usize>> {
    let Ok(text) = std::env::var(name) else {
        return Ok(default.to_vec());
    };
    let parse = |word: &str| {
        let number = word.trim().parse();
        number.map_err(|_| format!("{name}={text}: expected whole numbers parted by commas").into())
    };
    text.split(',').map(parse).collect()
}
