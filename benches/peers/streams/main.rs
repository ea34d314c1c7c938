//! Kafka Streams (`exactly_once_v2`, a persistent store) against this crate's consumer, on one broker.
//!
//! `scripts/bench streams` builds the Java program (benches/streams) and starts the broker.
//! Environment: `KAFKA_BOOTSTRAP`, `BENCH_STREAMS_CLASSES` (Java's class path), `JAVA_HOME`,
//! `BENCH_RECORDS` (1,000,000), `BENCH_ROUNDS` (3), `BENCH_BROKER_DATA` (where the broker keeps its
//! topics, to measure changelogs).
//!
//! Every run has a process, a group and a store of its own. The clock starts when a tenth of the
//! records has been handled, and stops when the group has committed the end of the topic.

#[path = "../../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use peers::footprint::{bytes_on_disk, median};
use peers::job::Job;
use peers::race::race;
use peers::topic::{Broker, fresh};
use peers::{Outcome, ours};
use support::{Contest, on_disk, per_second, setting};

/// What the Java program is called, and the end of its changelog's name.
const MAIN_CLASS: &str = "Deduplicate";
const CHANGELOG: &str = "-seen-changelog";

#[derive(Clone, Copy)]
enum Who {
    /// With its commit interval, in ms; without one it is Kafka Streams' own.
    Streams(Option<&'static str>),
    /// With its `uncommitted_records_max`; without one it is our own default.
    Ours(Option<&'static str>),
}

/// Tells a process of ours its `uncommitted_records_max`.
const UNCOMMITTED_RECORDS_MAX: &str = "BENCH_UNCOMMITTED_RECORDS_MAX";

const FORWARD: &str = "forwarded to a topic, in transactions";
const FORWARDING: [(&str, Who); 4] = [
    ("Kafka Streams, its defaults", Who::Streams(None)),
    (
        "Kafka Streams, `commit.interval.ms=1000`",
        Who::Streams(Some("1000")),
    ),
    ("`Transactional`, `Durability::Power`", Who::Ours(None)),
    (
        "`Transactional`, `uncommitted_records_max(8000)`",
        Who::Ours(Some("8000")),
    ),
];
const ONLY_STORE: &str = "remembered, nothing is written to a topic";
const ONLY_STORING: [(&str, Who); 2] = [
    ("Kafka Streams, its defaults", Who::Streams(None)),
    ("`IdempotentConsumer`, `Durability::Power`", Who::Ours(None)),
];

fn main() -> Outcome<()> {
    if let Some(job) = Job::told()? {
        return tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?
            .block_on(contend(&job));
    }
    let bootstrap = std::env::var("KAFKA_BOOTSTRAP")
        .map_err(|_| "KAFKA_BOOTSTRAP is not set: run scripts/bench streams")?;
    let broker = Broker::at(bootstrap)?;
    let records = u64::try_from(setting("BENCH_RECORDS", 1_000_000)?)?;
    let topic = fresh("streams")?;
    broker.create(&topic)?;
    let outcome = broker.fill(&topic, records).and_then(|()| {
        let course = Course {
            broker: &broker,
            topic: &topic,
            records,
        };
        course.contest(FORWARD, &FORWARDING, true)?;
        course.contest(ONLY_STORE, &ONLY_STORING, false)
    });
    broker.delete_all(&topic)?;
    outcome
}

async fn contend(job: &Job) -> Outcome<()> {
    if job.to.is_empty() {
        ours::consume(job).await
    } else {
        let max = std::env::var(UNCOMMITTED_RECORDS_MAX).ok();
        let max = max.map(|max| max.parse()).transpose()?;
        ours::forward(job, max).await
    }
}

/// What all runs have in common.
struct Course<'a> {
    broker: &'a Broker,
    topic: &'a str,
    records: u64,
}

/// What a run takes beside time.
struct Taken {
    memory_mib: Vec<u64>,
    disk: Vec<u64>,
    changelog: Vec<u64>,
}

impl Course<'_> {
    fn contest(&self, what: &str, contenders: &[(&'static str, Who)], to: bool) -> Outcome<()> {
        let names: Vec<_> = contenders.iter().map(|(name, _)| *name).collect();
        let title = format!("Kafka Streams: {} records {what}", self.records);
        let mut contest = Contest::new(title, "records/s", &names);
        let nothing = || Taken {
            memory_mib: Vec::new(),
            disk: Vec::new(),
            changelog: Vec::new(),
        };
        let mut taken: Vec<_> = contenders.iter().map(|_| nothing()).collect();
        contest.run(setting("BENCH_ROUNDS", 3)?, |index| {
            let rate = self.run(contenders[index].1, to, &mut taken[index])?;
            Ok((rate, taken[index].note()))
        })?;
        let notes = "peak memory, MiB | store, bytes a record | changelog, bytes a record";
        println!("{}", contest.table(Some(notes)));
        Ok(())
    }

    fn run(&self, who: Who, to: bool, taken: &mut Taken) -> Outcome<f64> {
        let warm_up = (self.records / 10).max(1);
        let directory = on_disk()?;
        // Deleted with the topic, whose name they begin with.
        let group = format!("{}-{}", self.topic, fresh("run")?);
        let job = Job {
            task: "run".to_owned(),
            bootstrap: self.broker.bootstrap().to_owned(),
            topic: self.topic.to_owned(),
            to: if to {
                format!("{group}-out")
            } else {
                String::new()
            },
            group,
            directory: directory.path().to_owned(),
            warm_up,
            handled: None,
        };
        if to {
            self.broker.create(&job.to)?;
        }
        let mut command = match who {
            Who::Ours(max) => our_own(&job, max)?,
            Who::Streams(interval) => streams(&job, interval)?,
        };
        let watch = self.broker.watch(&job.group, self.topic)?;
        let finish = race(&mut command, &watch, self.records, directory.path())?;
        if to {
            self.check_forwarded(&job.to)?;
        }
        taken.memory_mib.push(finish.peak_memory_kib / 1024);
        taken.disk.push(finish.disk_bytes / self.records);
        if let Who::Streams(_) = who {
            let bytes = changelog_bytes(&job.group)?;
            taken
                .changelog
                .extend(bytes.map(|bytes| bytes / self.records));
        }
        self.broker.delete_all(&job.group)?;
        let timed = usize::try_from(self.records - warm_up)?;
        Ok(per_second(timed, finish.took))
    }

    /// Markers of transactions take offsets too, so that there are more than records.
    fn check_forwarded(&self, to: &str) -> Outcome<()> {
        let end = self.broker.end(to)?;
        if u64::try_from(end).is_ok_and(|end| end >= self.records) {
            return Ok(());
        }
        Err(format!("{end} of {} records were forwarded", self.records).into())
    }
}

impl Taken {
    fn note(&self) -> String {
        let changelog = match &self.changelog[..] {
            [] => "none".to_owned(),
            bytes => median(bytes).to_string(),
        };
        let (memory, disk) = (median(&self.memory_mib), median(&self.disk));
        format!("{memory} | {disk} | {changelog}")
    }
}

fn our_own(job: &Job, uncommitted_records_max: Option<&str>) -> Outcome<Command> {
    let mut command = job.command()?;
    if let Some(max) = uncommitted_records_max {
        command.env(UNCOMMITTED_RECORDS_MAX, max);
    }
    Ok(command)
}

fn streams(job: &Job, interval: Option<&str>) -> Outcome<Command> {
    let classes = std::env::var("BENCH_STREAMS_CLASSES")
        .map_err(|_| "BENCH_STREAMS_CLASSES is not set: run scripts/bench streams")?;
    let java = match std::env::var_os("JAVA_HOME") {
        Some(home) => PathBuf::from(home).join("bin/java"),
        None => PathBuf::from("java"),
    };
    let mut command = Command::new(java);
    command
        .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
        .args(["-cp", &classes, MAIN_CLASS]);
    job.tell(&mut command);
    if let Some(interval) = interval {
        command.env("BENCH_COMMIT_INTERVAL_MS", interval);
    }
    Ok(command)
}

/// What the changelog of a store takes on the broker; nothing where its directory is not known.
fn changelog_bytes(group: &str) -> Outcome<Option<u64>> {
    // Empty where scripts/bench did not start the broker.
    match std::env::var_os("BENCH_BROKER_DATA").filter(|data| !data.is_empty()) {
        Some(data) => {
            let directory = Path::new(&data).join(format!("{group}{CHANGELOG}-0"));
            bytes_on_disk(&directory).map(Some)
        }
        None => Ok(None),
    }
}
