//! What the contract does not say because only a directory can be reopened, lost or damaged.
//!
//! Compiled once for each engine, under a module that names its store (`Kept`), how it is opened,
//! the durabilities that it has, and the engine without the store (`Raw`).

mod again;
#[cfg(all(feature = "sled", feature = "redb"))]
mod copying;
mod damage;
mod expire;
mod forget;
mod journal;
mod late;
mod refusals;
mod reopen;
mod tampered;
mod tiers;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{DURABILITIES, Kept, Raw, header, open, open_small, pages};
use crate::key::{Fingerprint, HashKey};
use crate::record::TopicPartition;
use crate::store::contract::unit;
use crate::store::directory::{Log as _, Paths};
use crate::store::{
    CommitUnit, Durability, Gaps, Lease, Mark, Owner, PartitionId, Place, Store, StoreError, format,
};

/// What an engine holds.
type Records = Vec<(Vec<u8>, Vec<u8>)>;

fn owner() -> Owner {
    Owner {
        group: "ship-svc".into(),
        recipe: "record-key".into(),
        scope: "topic".into(),
    }
}

fn orders(partition: i32) -> TopicPartition {
    TopicPartition::new("orders", partition)
}

/// What has been acknowledged by a store, to be compared with what a later opening knows.
#[derive(Default)]
struct Acknowledged(Vec<CommitUnit>);

impl Acknowledged {
    fn commit(&mut self, store: &Kept, units: Vec<CommitUnit>) {
        store.commit(&units).unwrap();
        self.0.extend(units);
    }

    /// What the store does not know, or knows differently, in words.
    fn missing_in(&self, store: &Kept) -> Result<(), String> {
        let mut heads = BTreeMap::new();
        for unit in &self.0 {
            heads.insert(unit.id, unit.next);
            let keys: Vec<_> = unit.entries.iter().map(|entry| entry.fingerprint).collect();
            let mut found = Vec::new();
            store.lookup(&keys, &mut found).map_err(|e| e.to_string())?;
            for (entry, mark) in unit.entries.iter().zip(found) {
                let mark = mark.ok_or_else(|| format!("no mark of {entry:?}"))?;
                let known = (mark.id, mark.offset, mark.value_digest, mark.has_result);
                let result = entry.result.as_deref();
                if known != (unit.id, entry.offset, entry.value_digest, result.is_some()) {
                    return Err(format!("{mark:?} for {entry:?}"));
                }
            }
            // One result a record: each costs a search in the log.
            if let Some(entry) = unit.entries.iter().find(|entry| entry.result.is_some()) {
                let mut mark = Vec::new();
                store
                    .lookup(&[entry.fingerprint], &mut mark)
                    .map_err(|e| e.to_string())?;
                let result = store
                    .result(&entry.fingerprint, &mark[0].unwrap())
                    .map_err(|e| e.to_string())?;
                if result.as_deref() != entry.result.as_deref() {
                    return Err(format!("result {result:?} for {entry:?}"));
                }
            }
        }
        let known = store.heads();
        for (id, next) in heads {
            let head = known.get(id.0 as usize).and_then(|(_, head)| *head);
            if head.map(|head| head.next) != Some(next) {
                return Err(format!("{id:?} stands at {head:?} instead of {next}"));
            }
        }
        Ok(())
    }
}

/// Fills a store with `rounds` commits over `partitions` partitions, of 1 to `most` keys each, and
/// closes it; released in order where `released`.
fn fill(
    path: &Path,
    durability: Durability,
    (partitions, rounds, most): (i32, i64, i64),
    released: bool,
) -> Acknowledged {
    let mut acknowledged = Acknowledged::default();
    let store = open(path, durability).unwrap();
    store.bind(&owner()).unwrap();
    let leases: Vec<_> = (0..partitions)
        .map(|partition| store.lease(&orders(partition)).unwrap())
        .collect();
    let mut at = vec![0; leases.len()];
    for round in 0..rounds {
        let units = leases.iter().zip(&mut at).map(|(lease, at)| {
            let previous = *at;
            *at += 1 + (round * 7919 + i64::from(lease.id.0) * 104_729) % most;
            unit(lease, previous, *at)
        });
        acknowledged.commit(&store, units.collect());
    }
    if released {
        for lease in &leases {
            store.release(lease).unwrap();
        }
    }
    acknowledged
}

/// Every file below a directory with its content.
fn snapshot(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.insert(path.clone(), Vec::new());
            files.append(&mut snapshot(&path));
        } else {
            let content = fs::read(&path).unwrap();
            files.insert(path, content);
        }
    }
    files
}

fn remove(path: &Path) {
    if path.is_dir() {
        fs::remove_dir_all(path).unwrap();
    } else {
        fs::remove_file(path).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// The refusal, which must name the directory and be of a kind that says what to do.
fn refusal(path: &Path, durability: Durability) -> StoreError {
    let Err(error) = open(path, durability) else {
        panic!("{} was opened", path.display());
    };
    let text = error.to_string();
    assert!(text.contains(&path.display().to_string()), "{text}");
    error
}
