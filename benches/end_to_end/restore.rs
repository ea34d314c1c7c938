//! Reading the keys of a topic that the group has consumed and the store does not know.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use idempotent_consumer::store::SledStore;
use idempotent_consumer::{
    Delivery, Effects, IdempotentConsumer, RestoreProgress, TopicPartition, key,
};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tokio_util::sync::CancellationToken;

use crate::support::{self, Contest, Outcome, per_second};
use crate::topic::Topic;
use crate::{Bench, RUN_LIMIT, numbers, raw};

const CONTENDERS: [&str; 2] = [
    "raw `StreamConsumer`, with our `fetch.queue.backoff.ms=10` and `check.crcs=true`",
    "the keys restored into an empty store, `Durability::Power`",
];
const SETTINGS: [(&str, &str); 2] = [("fetch.queue.backoff.ms", "10"), ("check.crcs", "true")];
const LOOK_EVERY: Duration = Duration::from_millis(1);

pub(crate) fn run(bench: &Bench) -> Outcome<()> {
    for partitions in numbers("BENCH_PARTITIONS", &[1, 4, 16])? {
        let filling = Topic::produce(&bench.bootstrap, partitions, bench.records, 0);
        let topic = bench.runtime.block_on(filling)?;
        let title = format!("Restore: {} keys, {partitions} partition(s)", bench.records);
        let mut contest = Contest::new(title, "keys/s", &CONTENDERS);
        let outcome = contest.run(bench.rounds, |index| {
            let took = bench.runtime.block_on(async {
                match index {
                    0 => raw::run(&topic, &SETTINGS).await,
                    _ => restore(&topic).await,
                }
            })?;
            Ok((per_second(bench.records, took), String::new()))
        });
        bench.runtime.block_on(topic.delete())?;
        outcome?;
        println!("{}", contest.table(None));
    }
    Ok(())
}

#[derive(Default)]
struct Told {
    begun: Option<Instant>,
    done: usize,
    ended: Option<Instant>,
}

async fn restore(topic: &Topic) -> Outcome<Duration> {
    let config = topic.fresh_group();
    let group = (
        config.clone(),
        topic.name.clone(),
        topic.partitions,
        topic.records,
    );
    tokio::task::spawn_blocking(move || consumed(group).map_err(|error| error.to_string()))
        .await??;
    let directory = support::on_disk()?;
    let told = Arc::<Mutex<Told>>::default();
    let (hears, begins) = (Arc::clone(&told), Arc::clone(&told));
    let consumer = IdempotentConsumer::builder(config)
        .topics([topic.name.as_str()])
        .key(key::record_key())
        // Before the first record: a short restore says nothing until it is over.
        .on_assignment(move |_: &[TopicPartition]| {
            let mut told = begins.lock().unwrap_or_else(PoisonError::into_inner);
            told.begun.get_or_insert_with(Instant::now);
        })
        .on_restore(move |progress: &RestoreProgress| {
            let mut told = hears.lock().unwrap_or_else(PoisonError::into_inner);
            if progress.done {
                told.done += 1;
                told.ended = Some(Instant::now());
            }
        })
        .build(Arc::new(SledStore::open(directory.path().join("store"))?))?;
    let shutdown = CancellationToken::new();
    let handler = async |_: &Delivery<'_>, _: &mut Effects| Ok(());
    let consuming = tokio::spawn(consumer.run(handler, shutdown.clone()));
    let limit = Instant::now() + RUN_LIMIT;
    let is_done = || {
        let told = told.lock().unwrap_or_else(PoisonError::into_inner);
        told.done == topic.partitions
    };
    while !is_done() && !consuming.is_finished() && Instant::now() < limit {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    shutdown.cancel();
    let report = consuming.await??;
    if usize::try_from(report.counts.restored) != Ok(topic.records) {
        return Err(format!("{} keys were restored", report.counts.restored).into());
    }
    let told = told.lock().unwrap_or_else(PoisonError::into_inner);
    let times = told.begun.zip(told.ended);
    let (begun, ended) = times.ok_or("nothing was restored")?;
    Ok(ended - begun)
}

/// The group has committed the ends of all partitions.
fn consumed(
    (config, topic, partitions, records): (ClientConfig, String, usize, usize),
) -> Outcome<()> {
    let consumer: BaseConsumer = config.create()?;
    let mut list = TopicPartitionList::new();
    for partition in 0..partitions {
        let extra = usize::from(partition < records % partitions);
        let end = Offset::Offset(i64::try_from(records / partitions + extra)?);
        list.add_partition_offset(&topic, i32::try_from(partition)?, end)?;
    }
    Ok(consumer.commit(&list, CommitMode::Sync)?)
}
