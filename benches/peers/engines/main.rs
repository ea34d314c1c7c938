//! Key-value engines with an entry for each key, against this crate's stores.
//!
//! `cargo bench --features engines --bench engines`. Environment: `BENCH_KEYS` (1,000,000),
//! `BENCH_ROUNDS` (3).
//!
//! The work: each key is looked up; a new one is marked; every 1,000 keys what was marked is made
//! durable. Every tenth key is a copy of one of an earlier commit.

#[path = "../../support/mod.rs"]
mod support;

mod entries;
mod ours;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use peers::Outcome;
use peers::footprint::{bytes_on_disk, median, peak_memory_kib};
use peers::keys::{key, scatter};
use support::{Contest, on_disk, per_second, setting};

/// As many as one commit of a partition holds at most.
const KEYS_PER_COMMIT: u64 = 1_000;
const COPY_EVERY: u64 = 10;
/// Tell a process what to do, and where.
const TASK: &str = "BENCH_TASK";
const DIRECTORY: &str = "BENCH_DIRECTORY";
const CONTENDERS: [&str; 6] = [
    "RocksDB, an entry for each key: `WriteBatch`, its log synced",
    "fjall, an entry for each key: batch, `SyncData`",
    "sled, an entry for each key: `apply_batch`, `flush`, sync",
    "redb, an entry for each key: a transaction, `Immediate`",
    "our store in sled, `Durability::Power`",
    "our store in redb, `Durability::Power`",
];

/// Decides about keys, and remembers them.
trait Decide {
    /// Whether `key` is new; then it is marked, durably from the next commit on.
    fn is_new(&mut self, number: u64, key: &[u8; 16]) -> Outcome<bool>;

    fn commit(&mut self) -> Outcome<()>;
}

fn main() -> Outcome<()> {
    let keys = u64::try_from(setting("BENCH_KEYS", 1_000_000)?)?;
    if let (Ok(task), Some(directory)) = (std::env::var(TASK), std::env::var_os(DIRECTORY)) {
        return one(&task, Path::new(&directory), keys);
    }
    let rounds = setting("BENCH_ROUNDS", 3)?;
    let title = format!("Engines: {keys} keys looked up and marked, {KEYS_PER_COMMIT} a commit");
    let mut contest = Contest::new(title, "keys/s", &CONTENDERS);
    let mut memory = vec![Vec::new(); CONTENDERS.len()];
    let mut disk = vec![Vec::new(); CONTENDERS.len()];
    contest.run(rounds, |index| {
        let directory = on_disk()?;
        let run = in_a_process_of_its_own(&index.to_string(), directory.path())?;
        memory[index].push(run.peak_memory_kib / 1024);
        disk[index].push(bytes_on_disk(directory.path())? / marks(keys));
        let note = format!("{} | {}", median(&memory[index]), median(&disk[index]));
        Ok((per_second(usize::try_from(keys)?, run.took), note))
    })?;
    let notes = "peak memory, MiB | bytes on disk a key";
    println!("{}", contest.table(Some(notes)));
    Ok(())
}

struct Run {
    took: Duration,
    peak_memory_kib: u64,
}

/// What one engine leaves allocated or unwritten must not be the next one's.
fn in_a_process_of_its_own(task: &str, directory: &Path) -> Outcome<Run> {
    let output = Command::new(std::env::current_exe()?)
        .env(TASK, task)
        .env(DIRECTORY, directory)
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<u64> = text.split_whitespace().flat_map(str::parse).collect();
    match numbers[..] {
        [nanos, peak_memory_kib] if output.status.success() => Ok(Run {
            took: Duration::from_nanos(nanos),
            peak_memory_kib,
        }),
        _ => Err(format!("contender {task}: {}: {text}", output.status).into()),
    }
}

/// Prints the nanoseconds that one contender took, and its peak memory in KiB.
fn one(task: &str, directory: &Path, keys: u64) -> Outcome<()> {
    let took = match task {
        "0" => work(&mut entries::RocksDb::open(directory)?, keys),
        "1" => work(&mut entries::Fjall::open(directory)?, keys),
        "2" => work(&mut entries::Sled::open(directory)?, keys),
        "3" => work(&mut entries::Redb::open(directory)?, keys),
        "4" => work(&mut ours::in_sled(directory)?, keys),
        "5" => work(&mut ours::in_redb(directory)?, keys),
        other => return Err(format!("{TASK}={other} is no task").into()),
    }?;
    println!(
        "{} {}",
        took.as_nanos(),
        peak_memory_kib(std::process::id())?
    );
    Ok(())
}

fn work(engine: &mut impl Decide, keys: u64) -> Outcome<Duration> {
    let mut new = 0;
    let begun = Instant::now();
    for first in (0..keys).step_by(KEYS_PER_COMMIT.try_into()?) {
        for number in first..keys.min(first + KEYS_PER_COMMIT) {
            let key = key(original(number));
            new += u64::from(engine.is_new(number, &key)?);
        }
        engine.commit()?;
    }
    let took = begun.elapsed();
    if new != marks(keys) {
        return Err(format!("{new} instead of {} keys were new", marks(keys)).into());
    }
    Ok(took)
}

/// The number whose key comes at `number`: its own, or that of one that a commit before has.
fn original(number: u64) -> u64 {
    if !is_copy(number) {
        return number;
    }
    let durable = number / KEYS_PER_COMMIT * KEYS_PER_COMMIT;
    let earlier = scatter(number) % durable;
    // A copy's own key is not there.
    earlier + u64::from(is_copy(earlier))
}

fn is_copy(number: u64) -> bool {
    number >= KEYS_PER_COMMIT && number.is_multiple_of(COPY_EVERY)
}

fn marks(keys: u64) -> u64 {
    let copies = |below: u64| below.div_ceil(COPY_EVERY);
    keys - copies(keys).saturating_sub(copies(KEYS_PER_COMMIT))
}
