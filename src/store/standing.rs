//! Where a partition stands: kept beside the log, so that it need not be read up to there again.

use super::partitions::{Partition, Partitions};
use super::tail::{Tail, Total};
use super::{Gaps, Head, PartitionId, Place, StoreError};
use crate::record::NextOffset;

/// What the units of a partition's log say of it, up to one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// Of the last unit.
    pub(super) place: Place,
    pub(super) head: Head,
    pub(super) gaps: Gaps,
    pub(super) tail: Tail,
    pub(super) written: Total,
    pub(super) expired: Total,
    pub(super) front: NextOffset,
}

impl Partition {
    /// Where it stands, `None` before the first unit.
    pub(super) fn standing(&self) -> Option<Standing> {
        Some(Standing {
            place: self.place,
            head: self.head?,
            gaps: self.gaps.clone(),
            tail: self.tail?,
            written: self.written,
            expired: self.expired,
            front: self.front?,
        })
    }
}

impl Partitions {
    /// Goes on from where a log had been followed to.
    pub(super) fn resume(&mut self, id: PartitionId, standing: Standing) -> Result<(), StoreError> {
        let partition = self.get_mut(id)?;
        partition.place = standing.place;
        partition.head = Some(standing.head);
        partition.gaps = standing.gaps;
        partition.tail = Some(standing.tail);
        partition.written = standing.written;
        partition.expired = standing.expired;
        partition.front = Some(standing.front);
        Ok(())
    }
}
