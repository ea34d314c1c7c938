//! How many records a second.

use std::time::Duration;

use idempotent_consumer::store::Durability;

use crate::support::{Contest, Outcome, per_second};
use crate::topic::Topic;
use crate::{Bench, RUN_LIMIT, numbers, ours, raw};

/// What our consumer sets where the user says nothing.
const OUR_SETTINGS: [(&str, &str); 2] = [("fetch.queue.backoff.ms", "10"), ("check.crcs", "true")];
const CONTENDERS: [&str; 6] = [
    "raw `StreamConsumer`, with our `fetch.queue.backoff.ms=10` and `check.crcs=true`",
    "raw `StreamConsumer`, its defaults",
    "our reading alone",
    "`IdempotentConsumer`, `Durability::Power`",
    "`IdempotentConsumer`, `Durability::Process`",
    "`IdempotentConsumer`, in memory",
];
/// Where it is not built in: see `alone`.
const READING: usize = 2;

pub(crate) fn run(bench: &Bench) -> Outcome<()> {
    let all: Vec<_> = (0..CONTENDERS.len())
        .filter(|row| *row != READING || cfg!(feature = "testkit"))
        .collect();
    let rows = numbers("BENCH_ROWS", &all)?;
    let names: Option<Vec<_>> = rows
        .iter()
        .map(|row| CONTENDERS.get(*row).copied())
        .collect();
    let names = names.ok_or("BENCH_ROWS: there are not so many rows")?;
    for partitions in numbers("BENCH_PARTITIONS", &[1, 4, 16])? {
        for copies in numbers("BENCH_COPIES", &[0, 1, 100])? {
            let filling = Topic::produce(&bench.bootstrap, partitions, bench.records, copies);
            let topic = bench.runtime.block_on(filling)?;
            let title = format!(
                "End to end: {} records, {partitions} partition(s), {copies} % copies",
                bench.records
            );
            let mut contest = Contest::new(title, "records/s", &names);
            let outcome = contest.run(bench.rounds, |index| {
                let before = cpu()?;
                let took = once(bench, &topic, rows[index])?;
                let spent = cpu()?.saturating_sub(before).as_secs_f64();
                let note = format!("{:.2}", spent * per_record(bench.records));
                Ok((per_second(bench.records, took), note))
            });
            bench.runtime.block_on(topic.delete())?;
            outcome?;
            println!(
                "{}",
                contest.table(Some("CPU us a record, of the last run, without the broker"))
            );
        }
    }
    Ok(())
}

fn once(bench: &Bench, topic: &Topic, row: usize) -> Outcome<Duration> {
    bench.runtime.block_on(async {
        match row {
            0 => raw::run(topic, &OUR_SETTINGS).await,
            1 => raw::run(topic, &[]).await,
            READING => alone(topic),
            3 => ours::on_disk(topic, Durability::Power).await,
            4 => ours::on_disk(topic, Durability::Process).await,
            _ => ours::in_memory(topic).await,
        }
    })
}

/// Microseconds a second over so many records.
#[expect(
    clippy::cast_precision_loss,
    reason = "far fewer digits than 52 bits hold"
)]
fn per_record(records: usize) -> f64 {
    1e6 / records as f64
}

/// What this process has used of all processors, in steps of 10 ms.
fn cpu() -> Outcome<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum();
    Ok(Duration::from_millis(10 * ticks))
}

/// Our reading, with everything that follows it left out.
#[cfg(feature = "testkit")]
fn alone(topic: &Topic) -> Outcome<Duration> {
    let records = topic.records as u64;
    let read = idempotent_consumer::read_and_drop;
    Ok(read(
        &topic.fresh_group(),
        &[&topic.name],
        records,
        RUN_LIMIT,
    )?)
}

#[cfg(not(feature = "testkit"))]
fn alone(_: &Topic) -> Outcome<Duration> {
    Err(format!("built without the feature `testkit` ({RUN_LIMIT:?})").into())
}
