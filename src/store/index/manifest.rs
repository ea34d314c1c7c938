//! Which runs count, and up to which place of each partition's log they hold everything.
//!
//! A text file like the stamp: JSON and a line with its checksum. It is replaced as a whole, behind
//! what it names; what lies beside it and is not named is left over from a crash.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::writer;
use crate::record::NextOffset;
use crate::store::directory::files;
use crate::store::standing::Standing;
use crate::store::tail::{Tail, Total};
use crate::store::{Anchor, Gap, Gaps, Head, PartitionId, Place, StoreError};

const VERSION: u32 = 1;
pub(super) const NAME: &str = "manifest";

/// Up to where runs hold everything, for each partition that has a unit.
pub(in crate::store) type Covered = BTreeMap<PartitionId, Standing>;

/// A run that counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Named {
    pub(super) number: u64,
    pub(super) keys: u64,
    /// The highest offset of each partition in it.
    pub(super) offsets_max: BTreeMap<u32, i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    /// From the oldest to the newest.
    pub(super) runs: Vec<Named>,
    /// Above all that were ever named.
    pub(super) next_run: u64,
    pub(super) covered: Covered,
}

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    store_id: String,
    next_run: u64,
    runs: Vec<Named>,
    partitions: Vec<Partition>,
}

#[derive(Serialize, Deserialize)]
struct Partition {
    number: u32,
    next: i64,
    step: u32,
    max_timestamp_ms: i64,
    /// Offset, timestamp, digest.
    anchor: Option<(i64, i64, u64)>,
    /// From, to, forgotten.
    gaps: Vec<(i64, i64, bool)>,
    began: i64,
    front: i64,
    clock_ms: i64,
    samples_ms: [i64; 2],
    /// Keys and bytes: before the last unit, with it, and of that expired.
    before: (u64, u64),
    written: (u64, u64),
    expired: (u64, u64),
}

fn pair(total: Total) -> (u64, u64) {
    (total.entries, total.bytes)
}

fn total((entries, bytes): (u64, u64)) -> Total {
    Total { entries, bytes }
}

impl Partition {
    fn new(id: PartitionId, standing: &Standing) -> Self {
        let anchor = standing.head.anchor;
        let gaps = standing.gaps.iter();
        Self {
            number: id.0,
            next: standing.place.next.get(),
            step: standing.place.step,
            max_timestamp_ms: standing.head.max_timestamp_ms,
            anchor: anchor.map(|anchor| (anchor.offset, anchor.timestamp_ms, anchor.digest)),
            gaps: gaps.map(|gap| (gap.from, gap.to, gap.forgotten)).collect(),
            began: standing.tail.began.get(),
            front: standing.front.get(),
            clock_ms: standing.tail.clock_ms,
            samples_ms: standing.tail.samples_ms,
            before: pair(standing.tail.before),
            written: pair(standing.written),
            expired: pair(standing.expired),
        }
    }

    /// `None` where a number is not what it can be.
    fn standing(&self) -> Option<(PartitionId, Standing)> {
        let next = NextOffset::new(self.next)?;
        let mut gaps = Gaps::default();
        for (from, to, forgotten) in &self.gaps {
            gaps.push(Gap {
                from: *from,
                to: *to,
                forgotten: *forgotten,
            });
        }
        let standing = Standing {
            place: Place {
                next,
                step: self.step,
            },
            head: Head {
                next,
                anchor: self.anchor.map(|(offset, timestamp_ms, digest)| Anchor {
                    offset,
                    timestamp_ms,
                    digest,
                }),
                max_timestamp_ms: self.max_timestamp_ms,
            },
            gaps,
            tail: Tail {
                began: NextOffset::new(self.began)?,
                clock_ms: self.clock_ms,
                samples_ms: self.samples_ms,
                before: total(self.before),
            },
            written: total(self.written),
            expired: total(self.expired),
            front: NextOffset::new(self.front)?,
        };
        Some((PartitionId(self.number), standing))
    }
}

impl Manifest {
    /// Reads a directory's manifest; `None` where there is none.
    ///
    /// # Errors
    /// What is wrong with it, in words: the index is made anew then.
    pub(super) fn read(directory: &Path, store_id: &str) -> Result<Option<Self>, String> {
        let text = match fs::read_to_string(directory.join(NAME)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let split = text.trim_end().rsplit_once("\nchecksum ");
        let (json, sum) = split.ok_or("it has no checksum line")?;
        if sum != checksum(json) {
            return Err("its checksum does not match".to_owned());
        }
        let file: File = serde_json::from_str(json).map_err(|error| error.to_string())?;
        if file.version != VERSION {
            return Err(format!("it has version {}, not {VERSION}", file.version));
        }
        if file.store_id != store_id {
            return Err(format!("it belongs to the store {}", file.store_id));
        }
        let covered = file.partitions.iter().map(Partition::standing);
        Ok(Some(Self {
            runs: file.runs,
            next_run: file.next_run,
            covered: covered.collect::<Option<_>>().ok_or("a negative offset")?,
        }))
    }

    /// Puts it in the place of the one before, on the device.
    pub(super) fn write(&self, directory: &Path, store_id: &str) -> Result<(), StoreError> {
        let path = directory.join(NAME);
        let failed = files::failed(&path, "writing the index's manifest");
        let partitions = self.covered.iter();
        let file = File {
            version: VERSION,
            store_id: store_id.to_owned(),
            next_run: self.next_run,
            runs: self.runs.clone(),
            partitions: partitions
                .map(|(id, standing)| Partition::new(*id, standing))
                .collect(),
        };
        let json = match serde_json::to_string(&file) {
            Ok(json) => json,
            Err(error) => return Err(failed(io::Error::other(error))),
        };
        let text = format!("{json}\nchecksum {}\n", checksum(&json));
        files::replace(&path, text.as_bytes()).map_err(failed)
    }
}

/// Takes a directory's manifest off the device: no run counts any more.
pub(super) fn remove(directory: &Path) -> Result<(), StoreError> {
    let path = directory.join(NAME);
    writer::remove(&path)
        .and_then(|()| {
            if directory.exists() {
                files::sync_parent(&path)
            } else {
                Ok(())
            }
        })
        .map_err(files::failed(&path, "removing the index's manifest"))
}

fn checksum(json: &str) -> String {
    format!("{:08x}", crc32fast::hash(json.as_bytes()))
}
