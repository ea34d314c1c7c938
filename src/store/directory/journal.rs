//! What has been done and is not in the log yet, as far as a death of this process would undo it.
//!
//! A unit is written here with one call, on the thread that did the work, into the page cache. That
//! outlives the process, not the machine: the log is what is synced, and what the journal holds is
//! copied there when the store is opened after a death. So a partition may run ahead of its syncs
//! without a death of the process repeating more than what was not written here.
//!
//! Nothing here is believed that does not continue the log: a record that is torn, left from
//! earlier or cut off from its predecessors is passed over, and its effects count as not marked.
//! The file has two halves, filled in turn. One is begun again once the log has all that it holds.
//! Before them stands which boot of the machine they are of: a page cache does not outlive it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::{DirectoryStore, Engine, UNIT_BYTES_MAX, files};
use crate::record::NextOffset;
use crate::store::format::{self, Logged};
use crate::store::{CommitUnit, PartitionId, Place, Store as _, StoreError};

/// Where Linux says which boot this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Before the halves: the boot, padded with zeros.
const HEAD_BYTES: usize = 64;
/// Of one half. Thirty partitions at full speed have less than this outside the log.
const HALF_BYTES: u64 = 8 << 20;
/// Before each record: the lengths of its key and value, four bytes each.
const FRAME_BYTES: usize = 8;
const KEY_BYTES_MAX: usize = 16;

/// One half, from its beginning.
#[derive(Default)]
struct Half {
    written_bytes: u64,
    /// How far each partition's records here reach, by its number.
    reach: Vec<Option<NextOffset>>,
}

pub(super) struct Journal {
    /// `None` once it could not be written: then work waits for the log.
    file: Option<File>,
    halves: [Half; 2],
    current: usize,
    /// How far the log has each partition, by its number.
    logged: Vec<Option<NextOffset>>,
    /// Whether each partition was leased since the store was opened, by its number.
    leased: Vec<bool>,
    other_boot: bool,
    frame: Vec<u8>,
}

fn slot<T: Default + Clone>(list: &mut Vec<T>, id: PartitionId) -> Option<&mut T> {
    let index = id.0 as usize;
    if index >= list.len() {
        list.resize(index + 1, T::default());
    }
    list.get_mut(index)
}

impl Journal {
    /// Opens the file, or makes an empty one, and reads what a dead process left in it. `unused` says
    /// that no partition of the store was ever leased.
    pub(super) fn open(path: &Path, unused: bool) -> Result<(Self, Vec<CommitUnit>), StoreError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(files::unusable(path))?;
        let mut left = Vec::new();
        let mut head = [0; HEAD_BYTES];
        let failed = || files::failed(path, "reading the journal");
        let written = read_at(&file, &mut head, 0).map_err(failed())?;
        for half in 0..2 {
            read_half(&file, start_of(half), &mut left).map_err(failed())?;
        }
        // In the order in which each partition's were written, whichever half they lie in.
        left.sort_by_key(|unit| (unit.id, unit.previous, unit.next));
        let journal = Self {
            file: Some(file),
            halves: Default::default(),
            current: 0,
            logged: Vec::new(),
            leased: Vec::new(),
            other_boot: !unused && (!written || boot() != Some(head)),
            frame: Vec::new(),
        };
        Ok((journal, left))
    }

    /// Forgets what was left: the log has it. What is written from here on is of this boot.
    fn clear(&self, path: &Path) -> Result<(), StoreError> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let head = boot().unwrap_or([0; HEAD_BYTES]);
        file.set_len(0)
            .and_then(|()| file.write_all_at(&head, 0))
            .map_err(files::failed(path, "emptying the journal"))
    }

    /// Writes a unit. `false` where it is not kept: there is no room, or no writing any more.
    pub(super) fn write(&mut self, unit: &CommitUnit) -> bool {
        let (id, next) = (unit.id, unit.next);
        let place = Place { next, step: 0 };
        let key = format::log_key(id, place);
        let value = format::encode_unit(place, 0, unit, None);
        self.frame.clear();
        let key = key.as_ref();
        for length in [key.len(), value.len()] {
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            self.frame.extend_from_slice(&length.to_le_bytes());
        }
        self.frame.extend_from_slice(key);
        self.frame.extend_from_slice(&value);
        let Some(at) = self.room(self.frame.len() as u64) else {
            return false;
        };
        let Some(file) = &self.file else { return false };
        if let Err(error) = file.write_all_at(&self.frame, at) {
            tracing::warn!(
                %error,
                "the store's journal cannot be written: from here on work waits for every commit"
            );
            self.file = None;
            return false;
        }
        let half = &mut self.halves[self.current];
        half.written_bytes += self.frame.len() as u64;
        if let Some(reach) = slot(&mut half.reach, id) {
            *reach = Some(next);
        }
        true
    }

    /// Where the next so many bytes go, in the half that is being filled or in the other.
    fn room(&mut self, bytes: u64) -> Option<u64> {
        if self.halves[self.current].written_bytes + bytes > HALF_BYTES {
            let other = 1 - self.current;
            let logged = &self.logged;
            let is_logged = |(index, reach): (usize, &Option<NextOffset>)| {
                *reach <= logged.get(index).copied().flatten()
            };
            if !self.halves[other].reach.iter().enumerate().all(is_logged) {
                return None;
            }
            self.halves[other] = Half::default();
            self.current = other;
        }
        let half = &self.halves[self.current];
        let fits = half.written_bytes + bytes <= HALF_BYTES;
        fits.then_some(start_of(self.current) + half.written_bytes)
    }

    /// The log has a partition up to here.
    pub(super) fn logged(&mut self, id: PartitionId, next: NextOffset) {
        if let Some(logged) = slot(&mut self.logged, id) {
            *logged = Some(next).max(*logged);
        }
    }

    /// Whether what was kept before may be lost with a page cache: the machine was another, or has
    /// been started since.
    pub(super) fn is_of_another_boot(&self) -> bool {
        self.other_boot
    }

    /// A new lease: what an older one left here does not count any more. Says whether the partition
    /// was leased before since the store was opened.
    pub(super) fn begin(&mut self, id: PartitionId) -> bool {
        for half in &mut self.halves {
            if let Some(reach) = slot(&mut half.reach, id) {
                *reach = None;
            }
        }
        slot(&mut self.leased, id).is_some_and(|leased| std::mem::replace(leased, true))
    }
}

fn start_of(half: usize) -> u64 {
    HEAD_BYTES as u64 + half as u64 * HALF_BYTES
}

/// What names this boot of the machine, `None` where nothing does.
fn boot() -> Option<[u8; HEAD_BYTES]> {
    let id = std::fs::read(BOOT_ID).ok()?;
    let mut head = [0; HEAD_BYTES];
    head.get_mut(..id.len())?.copy_from_slice(&id);
    Some(head)
}

/// Reads records up to the first that is none.
fn read_half(file: &File, start: u64, left: &mut Vec<CommitUnit>) -> io::Result<()> {
    let mut at = start;
    loop {
        let mut lengths = [0; FRAME_BYTES];
        if !read_at(file, &mut lengths, at)? {
            return Ok(());
        }
        let lengths = u64::from_le_bytes(lengths);
        let [key_bytes, value_bytes] = [lengths & u64::from(u32::MAX), lengths >> 32];
        let [key_bytes, value_bytes] =
            [key_bytes, value_bytes].map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        if key_bytes > KEY_BYTES_MAX || value_bytes > UNIT_BYTES_MAX {
            return Ok(());
        }
        let mut bytes = vec![0; key_bytes + value_bytes];
        if !read_at(file, &mut bytes, at + FRAME_BYTES as u64)? {
            return Ok(());
        }
        let (key, value) = bytes.split_at(key_bytes);
        let Ok(Logged { unit, .. }) = format::decode(key, value) else {
            return Ok(());
        };
        left.push(unit);
        at += (FRAME_BYTES + bytes.len()) as u64;
    }
}

/// `false` where the file ends before.
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<bool> {
    match file.read_exact_at(bytes, at) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Commits what a dead process did and had not in the log. `left` is in the order of its writing.
pub(super) fn take_over<E: Engine>(
    store: &DirectoryStore<E>,
    left: Vec<CommitUnit>,
) -> Result<(), StoreError> {
    let mut taken = 0;
    for unit in left {
        // Under the newest lease, right behind the head. A partition without one began here or
        // before: that is not known.
        let continues = {
            let state = store.state();
            let partition = state.partitions.get(unit.id);
            partition.is_some_and(|one| {
                one.epoch == unit.epoch && one.head.is_some_and(|head| head.next == unit.previous)
            })
        };
        if continues {
            taken += unit.entries.len();
            store.commit(&[unit])?;
        }
    }
    if taken > 0 {
        tracing::info!(
            path = %store.paths.directory.display(), keys = taken,
            "the process before died with these done and not in the log: taken from the journal"
        );
    }
    store.journal_lock().clear(&store.paths.journal)
}
