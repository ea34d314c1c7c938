//! How many effects a crash may repeat.

use super::Builder;
use crate::pipeline::{UNCOMMITTED_RECORDS_MAX, UNSYNCED_RECORDS_MAX};

/// As chosen, or by default.
pub(super) struct Limits {
    pub(super) uncommitted: usize,
    pub(super) unsynced: usize,
}

impl Builder {
    /// How many effects of one partition a death of the process may repeat: from 1 to 1,000, which
    /// is the default. It bounds how many of them are handled at once, too, whatever
    /// [`max_concurrency`](Self::max_concurrency) says.
    ///
    /// Chosen alone, it bounds what a power cut may repeat as well: at 1 the mark of a record is
    /// durable before the next record's effect.
    ///
    /// With [`Transactional`](crate::Transactional) up to 8,000 may be chosen: what a handler
    /// sends is void with its transaction, so that a death repeats only what it does besides. Each
    /// transaction costs the brokers the same few milliseconds, whatever it carries.
    pub fn uncommitted_records_max(mut self, records: usize) -> Self {
        self.uncommitted_records_max = Some(records);
        self
    }

    /// How many effects of one partition a power cut, or a crash of the operating system, may
    /// repeat: from [`uncommitted_records_max`](Self::uncommitted_records_max) to 8,000, which
    /// is the default, or that bound where it was chosen.
    ///
    /// Work may run ahead of the device so far: stores on disk keep what is done from a death of
    /// the process before it is synced. Nothing is acknowledged before that: no offset, and no
    /// answer to a copy. With stores that keep nothing before they commit, the lower bound counts
    /// for both.
    pub fn unsynced_records_max(mut self, records: usize) -> Self {
        self.unsynced_records_max = Some(records);
        self
    }

    pub(super) fn limits(&self) -> Limits {
        let chosen = self.uncommitted_records_max;
        let default = chosen.unwrap_or(UNSYNCED_RECORDS_MAX);
        Limits {
            uncommitted: chosen.unwrap_or(UNCOMMITTED_RECORDS_MAX),
            unsynced: self.unsynced_records_max.unwrap_or(default),
        }
    }
}
