//! A real Kafka, a handler that does nothing: our consumer against a raw `StreamConsumer`.
//!
//! `scripts/bench` starts a broker for it; or `KAFKA_BOOTSTRAP=host:port cargo bench --bench
//! end_to_end`. Environment: `BENCH_RECORDS` (1,000,000), `BENCH_ROUNDS` (5).
//!
//! Each run has a group, and where it has a store a store, of its own. The clock starts when the
//! first record has been handed over, so that joining the group counts for nobody. It stops for
//! the raw consumer when the last one has been, and for ours when the last mark is durable.

#[path = "../support/mod.rs"]
mod support;

mod ours;
mod raw;
mod topic;

use std::time::Duration;

use idempotent_consumer::store::Durability;
use support::{Contest, Outcome, per_second, setting};
use topic::Topic;

const PARTITIONS: [i32; 2] = [1, 4];
/// For one run. A consumer that stops getting records must not stop the whole bench.
const RUN_LIMIT: Duration = Duration::from_secs(120);
/// What our consumer sets where the user says nothing.
const OUR_SETTINGS: [(&str, &str); 2] = [("fetch.queue.backoff.ms", "10"), ("check.crcs", "true")];
const CONTENDERS: [&str; 5] = [
    "raw `StreamConsumer`, with our `fetch.queue.backoff.ms=10` and `check.crcs=true`",
    "raw `StreamConsumer`, its defaults",
    "`IdempotentConsumer`, `Durability::Power`",
    "`IdempotentConsumer`, `Durability::Process`",
    "`IdempotentConsumer`, in memory",
];

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
    let records = setting("BENCH_RECORDS", 1_000_000)?;
    let rounds = setting("BENCH_ROUNDS", 5)?;
    // As a service would have it: the handlers' futures and the raw consumer live in it.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    for partitions in PARTITIONS {
        let topic = runtime.block_on(Topic::produce(&bootstrap, partitions, records))?;
        let title = format!("End to end: {records} records, {partitions} partition(s)");
        let mut contest = Contest::new(title, "records/s", &CONTENDERS);
        let outcome = contest.run(rounds, |index| {
            let took = runtime.block_on(async {
                match index {
                    0 => raw::run(&topic, &OUR_SETTINGS).await,
                    1 => raw::run(&topic, &[]).await,
                    2 => ours::on_disk(&topic, Durability::Power).await,
                    3 => ours::on_disk(&topic, Durability::Process).await,
                    _ => ours::in_memory(&topic).await,
                }
            })?;
            Ok((per_second(records, took), String::new()))
        });
        runtime.block_on(topic.delete())?;
        outcome?;
        println!("{}", contest.table(None));
    }
    Ok(())
}
