//! mq-bridge with its deduplication in sled, against this crate's consumer, on one broker.
//!
//! `KAFKA_BOOTSTRAP=host:port cargo bench --features mq-bridge --bench mq_bridge`. Environment:
//! `BENCH_RECORDS` (1,000,000), `BENCH_ROUNDS` (3), `BENCH_KILLS` (3).
//!
//! Every run has a process, a group and a store of its own. The clock starts when a tenth of the
//! records has been handled, and stops when the group has committed the end of the topic.

#[path = "../../support/mod.rs"]
mod support;

mod bridge;
mod kills;

use peers::footprint::median;
use peers::job::Job;
use peers::race::race;
use peers::topic::{Broker, fresh};
use peers::{Outcome, ours};
use support::{Contest, on_disk, per_second, setting};

use bridge::Memory;

const CONTENDERS: [&str; 4] = [
    "mq-bridge, sled deduplication, `durable=true`",
    "mq-bridge, sled deduplication, its defaults",
    "mq-bridge without deduplication",
    "`IdempotentConsumer`, `Durability::Power`",
];

fn main() -> Outcome<()> {
    if let Some(job) = Job::told()? {
        return tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?
            .block_on(contend(&job));
    }
    let bootstrap = std::env::var("KAFKA_BOOTSTRAP")
        .map_err(|_| "KAFKA_BOOTSTRAP is not set: run scripts/bench mq_bridge")?;
    let broker = Broker::at(bootstrap)?;
    let records = u64::try_from(setting("BENCH_RECORDS", 1_000_000)?)?;
    let topic = fresh("mq-bridge")?;
    broker.create(&topic)?;
    let outcome = broker.fill(&topic, records).and_then(|()| {
        speed(&broker, &topic, records)?;
        kills::run(&broker, &topic, records)
    });
    broker.delete_all(&topic)?;
    outcome
}

async fn contend(job: &Job) -> Outcome<()> {
    match job.task.as_str() {
        "0" => bridge::consume(job, Memory::Durable).await,
        "1" => bridge::consume(job, Memory::Sled).await,
        "2" => bridge::consume(job, Memory::None).await,
        "3" => ours::consume(job).await,
        other => Err(format!("{other} is no contender").into()),
    }
}

fn speed(broker: &Broker, topic: &str, records: u64) -> Outcome<()> {
    let warm_up = (records / 10).max(1);
    let title = format!("mq-bridge: {records} records, 1 partition, until committed");
    let mut contest = Contest::new(title, "records/s", &CONTENDERS);
    let mut memory = vec![Vec::new(); CONTENDERS.len()];
    let mut disk = vec![Vec::new(); CONTENDERS.len()];
    contest.run(setting("BENCH_ROUNDS", 3)?, |index| {
        let directory = on_disk()?;
        let job = Job {
            task: index.to_string(),
            bootstrap: broker.bootstrap().to_owned(),
            topic: topic.to_owned(),
            group: fresh("mq-bridge")?,
            to: String::new(),
            directory: directory.path().to_owned(),
            warm_up,
            handled: None,
        };
        let watch = broker.watch(&job.group, topic)?;
        let finish = race(&mut job.command()?, &watch, records, directory.path())?;
        memory[index].push(finish.peak_memory_kib / 1024);
        disk[index].push(finish.disk_bytes / records);
        let note = format!("{} | {}", median(&memory[index]), median(&disk[index]));
        let timed = usize::try_from(records - warm_up)?;
        Ok((per_second(timed, finish.took), note))
    })?;
    let notes = "peak memory, MiB | bytes on disk a record";
    println!("{}", contest.table(Some(notes)));
    Ok(())
}
