//! Durable commits: units of keys in our stores, against sled with an entry for each key; and how
//! long the stores take to open again, closed in order or not.
//!
//! `cargo bench --features redb --bench commit`; without the feature, redb is left out.
//! Environment: `BENCH_KEYS` (1,000,000), `BENCH_ROUNDS` (5).

mod support;

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use idempotent_consumer::engine::{Engine, Look};
use idempotent_consumer::key::{Fingerprint, Scope};
#[cfg(feature = "redb")]
use idempotent_consumer::store::RedbStore;
use idempotent_consumer::store::{CommitUnit, Durability, Entry, Gaps, Owner, SledStore, Store};
use idempotent_consumer::{NextOffset, TopicPartition};

use support::{Contest, Outcome, on_disk, per_second, setting};

/// As many as one commit of a partition holds at most.
const KEYS_PER_COMMIT: usize = 1_000;
const CONTENDERS: &[&str] = &[
    "sled 0.34.7, an entry for each key: `apply_batch`, `flush`, sync",
    "our store: `commit` of a unit",
    "our engine: `look` and `done` for each key, then `commit`",
    #[cfg(feature = "redb")]
    "our store in redb: `commit` of a unit",
];
const OPENERS: &[&str] = &[
    "our store, closed in order",
    "our store, its process killed",
    #[cfg(feature = "redb")]
    "our store in redb, closed in order",
    #[cfg(feature = "redb")]
    "our store in redb, its process killed",
];

fn main() -> Outcome<()> {
    let keys = setting("BENCH_KEYS", 1_000_000)?;
    if let (Ok(task), Some(directory)) = (std::env::var(TASK), std::env::var_os(DIRECTORY)) {
        return one(&task, Path::new(&directory), keys);
    }
    let rounds = setting("BENCH_ROUNDS", 5)?;
    let title = format!("Durable commits: {keys} keys, {KEYS_PER_COMMIT} a commit");
    let mut contest = Contest::new(title, "keys/s", CONTENDERS);
    contest.run(rounds, |index| {
        let directory = on_disk()?;
        let took = in_a_process_of_its_own(TASKS[index], directory.path())?;
        let bytes = bytes_on_disk(directory.path())? / keys as u64;
        Ok((per_second(keys, took), bytes.to_string()))
    })?;
    println!("{}", contest.table(Some("bytes on disk a key")));
    let title = format!("Opening: {keys} keys, written and closed or killed just before");
    let mut contest = Contest::new(title, "keys/s", OPENERS);
    contest.run(rounds, |index| {
        let directory = on_disk()?;
        let [fill, open] = OPENINGS[index];
        in_a_process_of_its_own(fill, directory.path())?;
        let took = in_a_process_of_its_own(open, directory.path())?;
        Ok((per_second(keys, took), format!("{:.2}", took.as_secs_f32())))
    })?;
    println!("{}", contest.table(Some("seconds, last round")));
    Ok(())
}

/// Tell a process what to do, and where.
const TASK: &str = "BENCH_TASK";
const DIRECTORY: &str = "BENCH_DIRECTORY";
/// The contenders' tasks, in their order.
const TASKS: [&str; 4] = ["entries", "store", "engine", "redb"];
/// The openers' two tasks each.
const OPENINGS: [[&str; 2]; 4] = [
    ["store", "open"],
    ["store, killed", "open"],
    ["redb", "open redb"],
    ["redb, killed", "open redb"],
];

/// sled frees a closed tree bit by bit, on whichever thread uses sled next: in one process, whoever
/// came after a million single entries was three to five times as slow.
fn in_a_process_of_its_own(task: &str, directory: &Path) -> Outcome<Duration> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command
        .env(TASK, task)
        .env(DIRECTORY, directory)
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    match text.trim().parse() {
        Ok(nanos) => Ok(Duration::from_nanos(nanos)),
        Err(_) => Err(format!("{task}: {}: {text}", output.status).into()),
    }
}

/// Prints the nanoseconds that one task took.
fn one(task: &str, directory: &Path, keys: usize) -> Outcome<()> {
    let (what, killed) = match task.split_once(", ") {
        Some((what, _)) => (what, true),
        None => (task, false),
    };
    let took = match what {
        "entries" => entry_per_key(directory, keys),
        "store" => store(&open(directory)?, keys, killed),
        "open" => opening(keys, || open(directory)),
        #[cfg(feature = "redb")]
        "redb" => store(&open_redb(directory)?, keys, killed),
        #[cfg(feature = "redb")]
        "open redb" => opening(keys, || open_redb(directory)),
        "engine" => engine(directory, keys),
        other => return Err(format!("{TASK}={other} is no task").into()),
    }?;
    println!("{}", took.as_nanos());
    Ok(())
}

fn opening<S: Store>(keys: usize, open: impl Fn() -> Outcome<S>) -> Outcome<Duration> {
    let begun = Instant::now();
    let store = open()?;
    let took = begun.elapsed();
    if store.summary().keys != keys as u64 {
        return Err(format!("{} instead of {keys} keys", store.summary()).into());
    }
    Ok(took)
}

/// Keys like fingerprints: no order, no repeats.
fn key(number: usize) -> [u8; 16] {
    let mut bytes = [0; 16];
    let (low, high) = bytes.split_at_mut(8);
    low.copy_from_slice(&scatter(number as u64).to_le_bytes());
    high.copy_from_slice(&scatter(!(number as u64)).to_le_bytes());
    bytes
}

/// One step of a generator whose outputs are all different (splitmix64).
fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What people build first. sled's own settings, but for its background flush: every batch is
/// flushed here, and the second one would only cost.
fn entry_per_key(directory: &Path, keys: usize) -> Outcome<Duration> {
    let db = sled::Config::new()
        .path(directory)
        .flush_every_ms(None)
        .open()?;
    let data = File::open(directory.join("db"))?;
    let begun = Instant::now();
    for first in (0..keys).step_by(KEYS_PER_COMMIT) {
        let mut batch = sled::Batch::default();
        for number in first..keys.min(first + KEYS_PER_COMMIT) {
            batch.insert(&key(number), &(number as u64).to_le_bytes());
        }
        db.apply_batch(batch)?;
        db.flush()?;
        // sled's flush does not ask the device to keep anything.
        data.sync_data()?;
    }
    Ok(begun.elapsed())
}

fn open(directory: &Path) -> Outcome<SledStore> {
    let options = SledStore::options().durability(Durability::Power);
    Ok(options.open(directory.join("store"))?)
}

#[cfg(feature = "redb")]
fn open_redb(directory: &Path) -> Outcome<RedbStore> {
    let options = RedbStore::options().durability(Durability::Power);
    Ok(options.open(directory.join("store"))?)
}

fn owner() -> Owner {
    Owner {
        group: "bench".to_owned(),
        recipe: "record key".to_owned(),
        scope: "topic".to_owned(),
    }
}

fn store(store: &impl Store, keys: usize, killed: bool) -> Outcome<Duration> {
    store.bind(&owner())?;
    let lease = store.lease(&TopicPartition::new("bench", 0))?;
    let mut previous = NextOffset::ZERO;
    let begun = Instant::now();
    for first in (0..keys).step_by(KEYS_PER_COMMIT) {
        let entries = first..keys.min(first + KEYS_PER_COMMIT);
        let entries = entries.map(|number| Entry {
            fingerprint: Fingerprint::new(key(number)),
            offset: offset(number),
            value_digest: number as u64,
            result: None,
            dead_lettered: false,
            forgotten: false,
            restored: false,
        });
        let entries: Vec<_> = entries.collect();
        let next = NextOffset::after(entries.last().map_or(0, |entry| entry.offset));
        let unit = CommitUnit {
            id: lease.id,
            epoch: lease.epoch,
            previous,
            next,
            max_timestamp_ms: -1,
            anchor: None,
            entries,
            gaps: Gaps::default(),
            outbox: Vec::new(),
        };
        store.commit(&[unit])?;
        previous = next;
    }
    let took = begun.elapsed();
    if killed {
        println!("{}", took.as_nanos());
        // As SIGKILL leaves it: nothing is dropped.
        std::process::abort();
    }
    store.release(&lease)?;
    Ok(took)
}

/// With everything that a consumer does for a record but read and handle it.
fn engine(directory: &Path, keys: usize) -> Outcome<Duration> {
    let engine = Engine::new(Arc::new(open(directory)?), &owner(), Scope::Topic)?;
    let mut ledger = engine.lease(&TopicPartition::new("bench", 0))?;
    let begun = Instant::now();
    for number in 0..keys {
        let candidate = ledger.candidate(offset(number), &key(number), Some(b"value"));
        if ledger.look(&candidate)? != Look::New {
            return Err(format!("key {number} was seen before").into());
        }
        ledger.done(&candidate, None)?;
        if (number + 1) % KEYS_PER_COMMIT == 0 {
            engine.commit()?;
        }
    }
    engine.commit()?;
    let took = begun.elapsed();
    ledger.finish()?;
    Ok(took)
}

fn offset(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What the files take, not how long they say they are.
fn bytes_on_disk(directory: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        bytes += if meta.is_dir() {
            bytes_on_disk(&entry.path())?
        } else {
            meta.blocks() * 512
        };
    }
    Ok(bytes)
}
