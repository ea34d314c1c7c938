//! A power cut around the raising of a floor, over a log of which it is known what is on the device.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::record::{NextOffset, TopicPartition};
use crate::store::contract::unit;
use crate::store::directory::{DirectoryStore, Engine, HighWater, Log, Paths, Record, open};
use crate::store::index::Bounds;
use crate::store::{Durability, Expiry, PartitionId, Retaining as _, Store as _, StoreError};

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Default)]
struct Device {
    written: Records,
    synced: Records,
    /// What was synced when the first record was taken out.
    at_removal: Option<Records>,
}

/// A log whose commits are on the device only once it is synced.
#[derive(Clone, Default)]
struct Cached(Arc<Mutex<Device>>);

impl Engine for Cached {}

impl Log for Cached {
    const NAME: &'static str = "cached";
    const PLACE: &'static str = "log";
    const DATA: &'static str = "";
    type Bytes = Vec<u8>;

    fn scan_from(
        &self,
        from: &[u8],
        mut each: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        let records = self.0.lock().unwrap().written.clone();
        for (key, value) in records.range(from.to_vec()..) {
            if each(key, value)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn first_from(&self, from: &[u8]) -> Result<Option<Record<Vec<u8>>>, StoreError> {
        let device = self.0.lock().unwrap();
        let first = device.written.range(from.to_vec()..).next();
        Ok(first.map(|(key, value)| (key.clone(), value.clone())))
    }

    fn insert(&self, key: &[u8], value: Vec<u8>) -> Result<(), StoreError> {
        let mut device = self.0.lock().unwrap();
        device.written.insert(key.to_vec(), value);
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<(), StoreError> {
        let mut device = self.0.lock().unwrap();
        if device.at_removal.is_none() {
            device.at_removal = Some(device.synced.clone());
        }
        device.written.remove(key);
        Ok(())
    }

    fn harden(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        let mut device = self.0.lock().unwrap();
        device.synced = device.written.clone();
        Ok(())
    }
}

fn opened(path: &Path, log: &Cached) -> Result<DirectoryStore<Cached>, StoreError> {
    let (durability, bounds) = (Durability::Process, Bounds::default());
    open::open(path, durability, true, bounds, |place| {
        std::fs::create_dir_all(place).unwrap();
        Ok(log.clone())
    })
}

fn filled(path: &Path, log: &Cached) -> DirectoryStore<Cached> {
    let store = opened(path, log).unwrap();
    let lease = store.lease(&TopicPartition::new("orders", 0)).unwrap();
    for at in 0..9 {
        store
            .commit(&[unit(&lease, at * 10, at * 10 + 10)])
            .unwrap();
    }
    store
}

#[test]
fn a_power_cut_while_records_expire_leaves_a_store_that_opens() {
    let parent = tempfile::tempdir().unwrap();
    let log = Cached::default();
    let store = filled(parent.path(), &log);
    let expiry = Expiry {
        id: PartitionId(0),
        older_than_ms: i64::MAX,
        below: NextOffset::new(60).unwrap(),
        entries: u64::MAX,
        bytes: u64::MAX,
    };
    assert!(store.expire(&expiry).unwrap().units > 0);
    drop(store);
    // The high water is on the device, and of the log what was synced when it was written.
    let written = log.0.lock().unwrap().at_removal.clone().unwrap();
    let device = Device {
        written,
        ..Device::default()
    };
    let log = Cached(Arc::new(Mutex::new(device)));
    let store = opened(parent.path(), &log).unwrap();
    let id = PartitionId(0);
    assert_eq!(store.retained_from(id).get(), 60);
    assert_eq!(store.heads()[0].1.unwrap().next.get(), 90);
}

#[test]
fn a_floor_above_the_whole_log_is_refused_and_nothing_is_taken_out() {
    let parent = tempfile::tempdir().unwrap();
    let log = Cached::default();
    drop(filled(parent.path(), &log));
    let paths = Paths::new::<Cached>(parent.path());
    let (mut high_water, mut marks) = HighWater::open(&paths.high_water, 1).unwrap();
    marks[0].floor = NextOffset::new(1000);
    marks[0].place = None;
    high_water.write(PartitionId(0), &marks[0]).unwrap();
    let before = log.0.lock().unwrap().written.clone();
    for _ in 0..2 {
        let refused = opened(parent.path(), &log).err().unwrap();
        assert!(matches!(refused, StoreError::Damaged { .. }), "{refused}");
        assert!(refused.to_string().contains("offset 1000"), "{refused}");
        assert_eq!(log.0.lock().unwrap().written, before);
    }
}
