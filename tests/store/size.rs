//! A million keys: memory, disk, and the time to open after a kill.

use std::fs;
use std::path::Path;
use std::time::Instant;

use idempotent_consumer::store::{Durability, Store as _};

use crate::child::{self, say};
use crate::model::{check, open, orders, owner, unit};
use crate::skip::cannot_run;

const KEYS: i64 = 1_000_000;
const MEMORY_BOUND_MIB: u64 = 512;
/// Nothing is ever removed, so that this is how a store grows.
const DISK_BOUND_BYTES_A_KEY: u64 = 100;

/// The child: fills a store, then waits to be killed.
pub(crate) fn fill(directory: &Path) {
    let store = open(directory, Durability::Power).unwrap();
    store.bind(&owner()).unwrap();
    let leases = [0, 1, 2, 3].map(|partition| store.lease(&orders(partition)).unwrap());
    let start = Instant::now();
    for at in (0..KEYS / 4).step_by(1000) {
        let units = leases.map(|lease| {
            let mut unit = unit(&lease, at, at + 1000);
            unit.entries
                .iter_mut()
                .for_each(|entry| entry.result = None);
            unit
        });
        store.commit(&units).unwrap();
    }
    say(&format!(
        "filled in {:.1} s, {} MiB",
        start.elapsed().as_secs_f32(),
        peak_mib()
    ));
    loop {
        std::thread::park();
    }
}

/// The next child: opens it and finds every key.
pub(crate) fn reopen(directory: &Path) {
    let start = Instant::now();
    let store = open(directory, Durability::Power).unwrap();
    let opened = start.elapsed().as_secs_f32();
    assert_eq!(store.summary().keys, KEYS.unsigned_abs());
    let mut found = Vec::new();
    for partition in 0..4 {
        for at in (0..KEYS / 4).step_by(1000) {
            let keys: Vec<_> = (at..at + 1000)
                .map(|offset| crate::model::key(partition, offset))
                .collect();
            store.lookup(&keys, &mut found).unwrap();
            assert!(found.iter().all(Option::is_some));
        }
    }
    say(&format!("opened in {opened:.2} s, {} MiB", peak_mib()));
}

/// The most memory that this process ever had resident.
fn peak_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse::<u64>()
        .unwrap()
        / 1024
}

fn bytes_below(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.metadata().unwrap() {
            metadata if metadata.is_dir() => bytes_below(&entry.path()),
            metadata => metadata.len(),
        })
        .sum()
}

// C068, C069, C080, C081, C082
#[test]
fn a_million_keys_stay_within_memory_and_are_all_found_after_a_kill() {
    if !Path::new("/proc/self/status").exists() {
        return cannot_run("memory is read from /proc, and there is none");
    }
    let parent = tempfile::tempdir().unwrap();
    let mut filler = child::start(&[], "million", parent.path());
    let written = filler.hear().unwrap();
    filler.kill();
    let found = child::start(&[], "open-million", parent.path())
        .rest()
        .remove(0);
    let each = bytes_below(parent.path()) / KEYS.unsigned_abs();
    println!("{KEYS} keys: {written}; {found} after a kill; {each} bytes a key on disk");
    assert!(each <= DISK_BOUND_BYTES_A_KEY, "{each} bytes a key");
    for said in [&written, &found] {
        let words: Vec<_> = said.split(' ').collect();
        let mib: u64 = words[words.len() - 2].parse().unwrap();
        assert!(mib < MEMORY_BOUND_MIB, "{said}");
    }
    // And what was not acknowledged is not there.
    let store = open(parent.path(), Durability::Power).unwrap();
    assert!(check(&store, &[KEYS]).is_err());
}
