//! The high-water file: how far each partition's log must reach.
//!
//! It lies outside sled, because sled opened files whose tail had been cut off without a word. A
//! log that ends below its high water has lost what was acknowledged. The file may lag behind the
//! log (a crash between the two writes), never run ahead of it.
//!
//! Each partition has two slots, written in turn: a write that is torn leaves the other one.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::files;
use crate::record::NextOffset;
use crate::store::{PartitionId, Place, StoreError};

const SLOT_BYTES: usize = 40;
const PAIR_BYTES: usize = 2 * SLOT_BYTES;
const NONE: i64 = -1;
const STEP_MAX: u32 = (1 << 24) - 1;
const OPEN: u8 = 1;
const LACKS: u8 = 2;

/// What is known of one partition outside its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Where the log began, `None` before the first commit.
    pub(super) floor: Option<NextOffset>,
    /// How far it reached at least.
    pub(super) place: Option<Place>,
    pub(super) epoch: u32,
    /// Leased and not released.
    pub(super) open: bool,
    /// Since it was last released, more effects may have lost their marks than a death of a process
    /// alone costs: what the journal had kept is gone, or is of a lease that nobody ended.
    pub(super) lacks: bool,
}

pub(super) struct HighWater {
    file: File,
    sequences: Vec<u64>,
}

/// What a slot can hold of a place: its three bytes for a step end at 16 million.
pub(super) fn held(place: Place) -> Place {
    let step = place.step.min(STEP_MAX);
    Place { step, ..place }
}

impl HighWater {
    /// Opens the file and reads the slots of `partitions` partitions.
    pub(super) fn open(path: &Path, partitions: usize) -> Result<(Self, Vec<Mark>), StoreError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            // Not where it has to be there: an empty one would look like damage of another kind.
            .create(partitions == 0)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => files::damaged(path, "the high-water file is gone"),
                _ => files::unusable(path)(error),
            })?;
        let mut sequences = Vec::with_capacity(partitions);
        let mut marks = Vec::with_capacity(partitions);
        for (id, number) in (0..partitions).zip(0..) {
            let mut pair = [0; PAIR_BYTES];
            file.read_exact_at(&mut pair, place(id, 0))
                .map_err(|error| match error.kind() {
                    io::ErrorKind::UnexpectedEof => {
                        files::damaged(path, format!("it ends before partition number {id}"))
                    }
                    _ => files::failed(path, "reading the high water")(error),
                })?;
            let (first, second) = pair.split_at(SLOT_BYTES);
            let newest = [decode(first, number), decode(second, number)]
                .into_iter()
                .flatten()
                .max_by_key(|(sequence, _)| *sequence);
            let (sequence, mark) = newest.ok_or_else(|| {
                files::damaged(
                    path,
                    format!("both slots of partition number {id} are broken"),
                )
            })?;
            sequences.push(sequence);
            marks.push(mark);
        }
        Ok((Self { file, sequences }, marks))
    }

    /// Writes a partition's slot; in the page cache, so that a death of the process keeps it.
    pub(super) fn write(&mut self, id: PartitionId, mark: &Mark) -> io::Result<()> {
        let PartitionId(number) = id;
        let id = number as usize;
        let fresh = id >= self.sequences.len();
        if fresh {
            self.sequences.resize(id + 1, 0);
        }
        let sequence = self
            .sequences
            .get_mut(id)
            .ok_or_else(|| io::Error::other("no slot"))?;
        *sequence += 1;
        let slot = encode(*sequence, mark, number);
        if fresh {
            // Both at once: the file must reach to the end of the pair.
            self.file.write_all_at(&[slot, slot].concat(), place(id, 0))
        } else {
            self.file.write_all_at(&slot, place(id, *sequence % 2))
        }
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn place(id: usize, slot: u64) -> u64 {
    (id * PAIR_BYTES) as u64 + slot * SLOT_BYTES as u64
}

fn encode(sequence: u64, mark: &Mark, id: u32) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    let offset = |next: Option<NextOffset>| next.map_or(NONE, NextOffset::get).to_le_bytes();
    slot[..8].copy_from_slice(&sequence.to_le_bytes());
    slot[8..16].copy_from_slice(&offset(mark.floor));
    slot[16..24].copy_from_slice(&offset(mark.place.map(|place| place.next)));
    slot[24..28].copy_from_slice(&mark.epoch.to_le_bytes());
    // The number too: a slot that was written to another's place is damage.
    slot[28..32].copy_from_slice(&id.to_le_bytes());
    let step = mark.place.map_or(0, |place| held(place).step);
    slot[32..36].copy_from_slice(&step.to_be_bytes());
    let flag = |set: bool, bit| if set { bit } else { 0 };
    slot[32] = flag(mark.open, OPEN) | flag(mark.lacks, LACKS);
    let sum = crc32fast::hash(&slot[..36]);
    slot[36..].copy_from_slice(&sum.to_le_bytes());
    slot
}

fn decode(slot: &[u8], id: u32) -> Option<(u64, Mark)> {
    let word = |at: usize| -> Option<[u8; 4]> { slot.get(at..at + 4)?.try_into().ok() };
    let long = |at: usize| -> Option<[u8; 8]> { slot.get(at..at + 8)?.try_into().ok() };
    let intact = crc32fast::hash(slot.get(..36)?) == u32::from_le_bytes(word(36)?);
    if !intact || u32::from_le_bytes(word(28)?) != id {
        return None;
    }
    let next = NextOffset::new(i64::from_le_bytes(long(16)?));
    let step = u32::from_be_bytes(word(32)?) & STEP_MAX;
    let mark = Mark {
        floor: NextOffset::new(i64::from_le_bytes(long(8)?)),
        place: next.map(|next| Place { next, step }),
        epoch: u32::from_le_bytes(word(24)?),
        open: *slot.get(32)? & OPEN != 0,
        lacks: *slot.get(32)? & LACKS != 0,
    };
    Some((u64::from_le_bytes(long(0)?), mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(next: i64, open: bool) -> Mark {
        Mark {
            floor: Some(NextOffset::ZERO),
            place: NextOffset::new(next).map(|next| Place { next, step: 70_000 }),
            epoch: 3,
            open,
            lacks: !open,
        }
    }

    #[test]
    fn a_torn_slot_leaves_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("high-water");
        let (mut file, marks) = HighWater::open(&path, 0).unwrap();
        assert_eq!(marks, []);
        for next in 1..=7 {
            file.write(PartitionId(0), &mark(next, false)).unwrap();
            file.write(PartitionId(1), &mark(next * 10, true)).unwrap();
        }
        assert_eq!(
            HighWater::open(&path, 2).unwrap().1,
            [mark(7, false), mark(70, true)]
        );
        // The last write of partition 1, torn in the middle.
        file.file
            .write_all_at(&[0xff; 9], place(1, 7 % 2) + 12)
            .unwrap();
        assert_eq!(
            HighWater::open(&path, 2).unwrap().1,
            [mark(7, false), mark(60, true)]
        );
        file.file
            .write_all_at(&[0xff; 9], place(1, 0) + 12)
            .unwrap();
        let error = HighWater::open(&path, 2).err().unwrap().to_string();
        assert!(error.contains("partition number 1"), "{error}");
    }

    #[test]
    fn a_file_cut_short_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("high-water");
        let (mut file, _) = HighWater::open(&path, 0).unwrap();
        file.write(PartitionId(0), &mark(1, false)).unwrap();
        file.file.set_len(PAIR_BYTES as u64 - 1).unwrap();
        assert!(matches!(
            HighWater::open(&path, 1),
            Err(StoreError::Damaged { .. })
        ));
        assert!(matches!(
            HighWater::open(&path, 2),
            Err(StoreError::Damaged { .. })
        ));
    }
}
