//! Which records may have taken effect without a mark.

use super::settings::{UNCOMMITTED_RECORDS_MAX, UNSYNCED_RECORDS_MAX};
use crate::record::NextOffset;
use crate::store::{Gaps, Lease};

/// Which records of a partition are handed out in doubt.
///
/// A run of this store that ends without order leaves at most [`UNCOMMITTED_RECORDS_MAX`] effects of
/// a partition without marks, and they are among the first new records from its lowest unfinished
/// one on: records are taken in in order, and no more than that at a time. So that many are in
/// doubt; and [`UNSYNCED_RECORDS_MAX`] where more than the process has ended, or where the store keeps
/// nothing before its transaction, which may hold as many. Where another member was there last, and
/// how that ended is not known, everything is. Not in doubt is what came into the partition after it
/// was taken.
pub(super) struct Doubt {
    /// New records to come that may have taken effect before.
    left: usize,
    /// Behind the last of them, once it was handed out.
    until: Option<NextOffset>,
    elsewhere: bool,
    /// Where the partition ended when it was taken, once that is known.
    end: Option<NextOffset>,
}

impl Doubt {
    /// `may_lack` says whether the store may lack what it had kept.
    pub(super) fn new(
        lease: &Lease,
        gaps: &Gaps,
        committed: Option<NextOffset>,
        may_lack: bool,
    ) -> Self {
        // Further than this store has come.
        let head = lease.head.map_or(NextOffset::ZERO, |head| head.next);
        let reached = gaps.first_unfinished().unwrap_or(head);
        let elsewhere = committed.is_some_and(|committed| committed > reached);
        let left = match (lease.in_doubt, may_lack) {
            (false, _) => 0,
            (true, false) => UNCOMMITTED_RECORDS_MAX,
            (true, true) => UNSYNCED_RECORDS_MAX,
        };
        Self {
            left,
            until: (left == 0).then_some(NextOffset::ZERO),
            elsewhere,
            end: None,
        }
    }

    /// Whether any record may be in doubt, before the first is handed out.
    pub(super) fn is_any(&self) -> bool {
        self.until.is_none() || self.elsewhere
    }

    /// The partition ends here now.
    pub(super) fn ends_at(&mut self, high: NextOffset) {
        self.end = Some(high);
    }

    /// Whether the new record at `offset` is in doubt.
    pub(super) fn covers(&self, offset: i64) -> bool {
        self.is_open(NextOffset::new(offset).unwrap_or_default())
    }

    /// Whether records in doubt are left where `unfinished` is the lowest that is not done: the
    /// lease before may have had effects on them, and the next one must say so.
    pub(super) fn is_open(&self, unfinished: NextOffset) -> bool {
        let before = |end: Option<NextOffset>| end.is_none_or(|end| unfinished < end);
        before(self.end) && (self.elsewhere || before(self.until))
    }

    /// A new record is handed out, in the order of their offsets.
    pub(super) fn step(&mut self, offset: i64) {
        if self.left > 0 {
            self.left -= 1;
            if self.left == 0 {
                self.until = Some(NextOffset::after(offset));
            }
        }
    }
}
