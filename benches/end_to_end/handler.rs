//! A handler that takes some time, many at once in the order of their keys: against the same calls
//! with nothing around them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{StreamExt as _, iter};
use idempotent_consumer::store::SledStore;
use idempotent_consumer::{Delivery, Effects, IdempotentConsumer, Ordering, key};
use tokio_util::sync::CancellationToken;

use crate::ours::finish;
use crate::support::{self, Contest, Outcome, per_second};
use crate::topic::Topic;
use crate::{Bench, numbers};

const AT_ONCE: usize = 64;
/// What is asked for. tokio's timer counts milliseconds, so that it takes about one: the first row
/// says how long.
const WORK: Duration = Duration::from_micros(200);
const CONTENDERS: [&str; 2] = [
    "the handler alone, 64 at once",
    "`IdempotentConsumer`, `Ordering::Key`, `max_concurrency(64)`, `Durability::Power`",
];

async fn work() {
    tokio::time::sleep(WORK).await;
}

pub(crate) fn run(bench: &Bench) -> Outcome<()> {
    for partitions in numbers("BENCH_PARTITIONS", &[1, 4, 16])? {
        let filling = Topic::produce(&bench.bootstrap, partitions, bench.records, 0);
        let topic = bench.runtime.block_on(filling)?;
        let title = format!(
            "A handler that asks for 200 us: {} records, {partitions} partition(s)",
            bench.records
        );
        let mut contest = Contest::new(title, "records/s", &CONTENDERS);
        let outcome = contest.run(bench.rounds, |index| {
            let took = match index {
                0 => alone(topic.records)?,
                _ => bench.runtime.block_on(ours(&topic))?,
            };
            Ok((per_second(bench.records, took), String::new()))
        });
        bench.runtime.block_on(topic.delete())?;
        outcome?;
        println!("{}", contest.table(None));
    }
    Ok(())
}

/// On one thread, as a lane runs its handlers.
fn alone(records: usize) -> Outcome<Duration> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let begun = Instant::now();
    let calls = iter(0..records).map(|_| work()).buffer_unordered(AT_ONCE);
    runtime.block_on(calls.for_each(async |()| ()));
    Ok(begun.elapsed())
}

async fn ours(topic: &Topic) -> Outcome<Duration> {
    let directory = support::on_disk()?;
    let store = Arc::new(SledStore::open(directory.path().join("store"))?);
    let consumer = IdempotentConsumer::builder(topic.fresh_group())
        .topics([topic.name.as_str()])
        .key(key::record_key())
        .ordering(Ordering::Key)
        .max_concurrency(AT_ONCE)
        .build(Arc::clone(&store))?;
    let begun = Arc::default();
    let first: Arc<std::sync::OnceLock<Instant>> = Arc::clone(&begun);
    let handler = async move |_: &Delivery<'_>, _: &mut Effects| {
        first.get_or_init(Instant::now);
        work().await;
        Ok(())
    };
    let shutdown = CancellationToken::new();
    let consuming = tokio::spawn(consumer.run(handler, shutdown.clone()));
    finish(topic, &*store, &begun, consuming, &shutdown).await
}
