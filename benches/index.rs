//! A store with many keys: decisions a second, memory, disk, and how long it takes to open again.
//!
//! `cargo bench --bench index -- [KEYS] [PARTITIONS]`: 10,000,000 and 1 where they are not given. A
//! hundred million take about 5 GB below target/ while it runs.
//!
//! Every commit is durable (`Power`) and holds 1,000 new keys. They are looked up together with 52
//! copies of keys from the whole history so far, chosen at random, which makes 5 % of all; every
//! answer is checked. Memory is the system's count for a process that does nothing else. Files are
//! mostly in the system's page cache, which is not the process's.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "numbers of keys are far below where anything is lost"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use idempotent_consumer::key::Fingerprint;
use idempotent_consumer::store::{
    CommitUnit, Durability, Entry, Gaps, Lease, Mark, Owner, SledStore, Store, Summary,
};
use idempotent_consumer::{NextOffset, TopicPartition};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const NEW: u64 = 1_000;
const COPIES: u64 = 52;
const SAYS_EVERY: u64 = 10_000_000;

/// Tells a process what to do, and where.
const TASK: &str = "BENCH_TASK";
const DIRECTORY: &str = "BENCH_DIRECTORY";

fn main() -> Outcome<()> {
    let numbers = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"));
    let numbers: Vec<u64> = numbers.map(|word| word.parse()).collect::<Result<_, _>>()?;
    let work = Work {
        keys: numbers.first().copied().unwrap_or(10_000_000),
        partitions: numbers.get(1).copied().unwrap_or(1),
    };
    if let (Ok(task), Some(directory)) = (std::env::var(TASK), std::env::var_os(DIRECTORY)) {
        return work.one(&task, Path::new(&directory));
    }
    // A disk: the system's temporary directory may be memory.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let directory = directory.path();
    println!("{} keys, {} partitions", work.keys, work.partitions);
    work.run("fill", directory)?;
    let bytes = bytes_on_disk(directory)?;
    let a_key = bytes as f64 / work.keys as f64;
    println!("disk: {bytes} bytes, {a_key:.1} a key");
    work.run("open", directory)?;
    println!("killed after {}", work.kill_in_more(directory)?);
    work.run("open", directory)
}

#[derive(Clone, Copy)]
struct Work {
    keys: u64,
    partitions: u64,
}

impl Work {
    fn start(self, task: &str, directory: &Path) -> Outcome<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args([self.keys.to_string(), self.partitions.to_string()])
            .env(TASK, task)
            .env(DIRECTORY, directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        Ok(command.spawn()?)
    }

    fn run(self, task: &str, directory: &Path) -> Outcome<()> {
        let output = self.start(task, directory)?.wait_with_output()?;
        if !output.status.success() {
            return Err(format!("{task}: {}", output.status).into());
        }
        print!("{}", String::from_utf8(output.stdout)?);
        Ok(())
    }

    /// Half a table more than what is sealed, and killed before it can be, with its leases.
    fn kill_in_more(self, directory: &Path) -> Outcome<String> {
        let mut child = self.start("more", directory)?;
        let output = child.stdout.take().ok_or("no output")?;
        let mut line = String::new();
        let said = BufReader::new(output).read_line(&mut line);
        child.kill()?;
        let status = child.wait()?;
        said?;
        if line.is_empty() || status.signal().is_none() {
            return Err(format!("more: ended before it was killed: {status}").into());
        }
        Ok(line.trim().to_owned())
    }

    fn one(self, task: &str, directory: &Path) -> Outcome<()> {
        let begun = Instant::now();
        let store = open(directory)?;
        let opened = begun.elapsed().as_secs_f64();
        match task {
            "fill" => {
                let leases = self.lease(&store)?;
                let decisions = self.fill(&store, &leases, 0, self.keys)?;
                for lease in &leases {
                    store.release(lease)?;
                }
                let begun = Instant::now();
                drop(store);
                println!(
                    "{decisions}; closed in {:.2} s",
                    begun.elapsed().as_secs_f64()
                );
            }
            "open" => {
                // Where it is says nothing to a reader of the page.
                let Summary {
                    keys, partitions, ..
                } = store.summary();
                println!(
                    "opened in {opened:.2} s: {keys} keys, {partitions} partitions; {}",
                    memory()?
                );
                self.check(&store)?;
                println!("checked; {}", memory()?);
            }
            "more" => {
                let leases = self.lease(&store)?;
                let decisions = self.fill(&store, &leases, self.keys, self.keys + 1_500_000)?;
                println!("{decisions}");
                std::io::stdout().flush()?;
                // Until it is killed; it does not outlive who is to do it.
                std::io::stdin().read_to_end(&mut Vec::new())?;
                return Err("not killed".into());
            }
            other => return Err(format!("{TASK}={other} is no task").into()),
        }
        Ok(())
    }

    fn lease(self, store: &SledStore) -> Outcome<Vec<Lease>> {
        let owner = Owner {
            group: "bench".to_owned(),
            recipe: "record key".to_owned(),
            scope: "topic".to_owned(),
        };
        store.bind(&owner)?;
        (0..self.partitions)
            .map(|number| {
                store
                    .lease(&TopicPartition::new("bench", i32::try_from(number)?))
                    .map_err(Into::into)
            })
            .collect()
    }

    /// Does the keys of a range; says how fast, and in how much memory.
    fn fill(self, store: &SledStore, leases: &[Lease], from: u64, to: u64) -> Outcome<String> {
        let mut random = 1;
        let (mut decisions, mut said) = (0, from);
        let (mut keys, mut found) = (Vec::new(), Vec::new());
        let (mut looking_up, mut committing) = (Duration::ZERO, Duration::ZERO);
        let begun = Instant::now();
        for first in (from..to).step_by(NEW as usize) {
            keys.clear();
            keys.extend((first..first + NEW).map(key));
            let copies = if first == 0 { 0 } else { COPIES };
            let copies: Vec<_> = std::iter::repeat_with(|| {
                random = scatter(random);
                random % first.max(1)
            })
            .take(copies as usize)
            .collect();
            keys.extend(copies.iter().copied().map(key));
            let looks_up = Instant::now();
            store.lookup(&keys, &mut found)?;
            looking_up += looks_up.elapsed();
            self.compare(&found, &copies)?;
            decisions += keys.len() as u64;
            let batch = first / NEW;
            let unit = self.unit(&leases[(batch % self.partitions) as usize], batch);
            let commits = Instant::now();
            store.commit(&[unit])?;
            committing += commits.elapsed();
            if first + NEW - said >= SAYS_EVERY {
                said = first + NEW;
                let rate = decisions as f64 / begun.elapsed().as_secs_f64();
                eprintln!("{said} keys: {rate:.0} decisions/s; {}", memory()?);
            }
        }
        let took = begun.elapsed().as_secs_f64();
        let rate = decisions as f64 / took;
        let memory = memory()?;
        Ok(format!(
            "{decisions} decisions in {took:.1} s, {:.1} of it looking up and {:.1} committing: \
             {rate:.0} a second; {memory}",
            looking_up.as_secs_f64(),
            committing.as_secs_f64()
        ))
    }

    /// New keys are not known, copies are, with where they were done.
    fn compare(self, found: &[Option<Mark>], copies: &[u64]) -> Outcome<()> {
        let (new, known) = found.split_at(NEW as usize);
        if let Some(mark) = new.iter().flatten().next() {
            return Err(format!("a new key is known: {mark:?}").into());
        }
        for (mark, number) in known.iter().zip(copies) {
            let mark = mark.ok_or_else(|| format!("key {number} is not known"))?;
            let batch = number / NEW;
            let place = (u64::from(mark.id.0), mark.offset, mark.value_digest);
            if place
                != (
                    batch % self.partitions,
                    self.offset(*number),
                    number & 0xffff_ffff,
                )
            {
                return Err(format!("key {number}: {mark:?}").into());
            }
        }
        Ok(())
    }

    /// A sample of all keys, spread evenly, and as many that are new.
    fn check(self, store: &SledStore) -> Outcome<()> {
        let mut found = Vec::new();
        let sample = (0..self.keys).step_by((self.keys / 100_000).max(1) as usize);
        let sample: Vec<_> = sample.collect();
        for copies in sample.chunks(NEW as usize) {
            let new = (0..NEW).map(|number| key(u64::MAX - copies[0] - number));
            let keys: Vec<_> = new.chain(copies.iter().copied().map(key)).collect();
            store.lookup(&keys, &mut found)?;
            self.compare(&found, copies)?;
        }
        Ok(())
    }

    fn offset(self, number: u64) -> i64 {
        let batch = number / NEW;
        ((batch / self.partitions) * (NEW + COPIES) + number % NEW) as i64
    }

    fn unit(self, lease: &Lease, batch: u64) -> CommitUnit {
        let entries = (batch * NEW..(batch + 1) * NEW).map(|number| Entry {
            fingerprint: key(number),
            offset: self.offset(number),
            value_digest: number,
            result: None,
            dead_lettered: false,
            forgotten: false,
            restored: false,
        });
        let begins = self.offset(batch * NEW);
        let previous = if begins == 0 {
            NextOffset::ZERO
        } else {
            NextOffset::after(begins - 1)
        };
        CommitUnit {
            id: lease.id,
            epoch: lease.epoch,
            previous,
            next: NextOffset::after(begins + (NEW + COPIES) as i64 - 1),
            max_timestamp_ms: -1,
            anchor: None,
            entries: entries.collect(),
            gaps: Gaps::default(),
            outbox: Vec::new(),
        }
    }
}

fn open(directory: &Path) -> Outcome<SledStore> {
    let options = SledStore::options().durability(Durability::Power);
    Ok(options.open(directory.join("store"))?)
}

/// Keys like fingerprints: no order, no repeats.
fn key(number: u64) -> Fingerprint {
    let [low, high] = [scatter(number), scatter(!number)].map(u64::to_le_bytes);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&low);
    bytes[8..].copy_from_slice(&high);
    Fingerprint::new(bytes)
}

/// One step of a generator whose outputs are all different (splitmix64).
fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What the system counts for this process, now and at its highest.
fn memory() -> Outcome<String> {
    let status = fs::read_to_string("/proc/self/status")?;
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.map_or(0, |kib| kib * 1024 / 1_000_000)
    };
    Ok(format!(
        "{} MB resident, {} MB at most",
        of("VmRSS:"),
        of("VmHWM:")
    ))
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
