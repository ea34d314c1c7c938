//! A store that holds too much: the oldest goes first, whosever it is.

use std::fmt;

use super::{AtCap, Retention};
use crate::record::NextOffset;
use crate::store::{Expired, Expiry, Retained, Retaining, StoreError, Usage};

/// Which cap is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    setting: &'static str,
    max: u64,
    held: u64,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, max, held } = self;
        write!(f, "the store holds {held}, and {setting} is {max}")
    }
}

impl Retention {
    /// The cap that is reached, if one is; where the window is shrunk, the one that is passed.
    pub(crate) fn full(&self, usage: Usage) -> Option<Full> {
        let spare = u64::from(self.at_cap == AtCap::ShrinkWindow);
        let caps = [
            ("Retention::max_entries", self.entries_max, usage.entries),
            ("Retention::max_bytes", self.bytes_max, usage.bytes),
        ];
        caps.into_iter().find_map(|(setting, max, held)| {
            let max = max.filter(|max| held >= max.saturating_add(spare))?;
            Some(Full { setting, max, held })
        })
    }

    /// How much is too much.
    fn excess(&self, usage: Usage) -> Usage {
        let over = |held: u64, max: Option<u64>| held.saturating_sub(max.unwrap_or(u64::MAX));
        Usage {
            entries: over(usage.entries, self.entries_max),
            bytes: over(usage.bytes, self.bytes_max),
        }
    }
}

/// Drops the oldest units over all partitions, until the caps are kept or nothing may go. `limit`
/// says up to where something of a partition may; `rest` is called between two steps, and says
/// whether to go on.
pub(super) fn shrink(
    store: &dyn Retaining,
    retention: &Retention,
    limit: &dyn Fn(&Retained) -> NextOffset,
    rest: &mut dyn FnMut() -> bool,
) -> Result<Expired, StoreError> {
    let mut sum = Expired::default();
    let mut stuck = Vec::new();
    loop {
        let excess = retention.excess(store.usage());
        if excess == Usage::default() || !rest() {
            return Ok(sum);
        }
        let mut list = store.retained()?;
        list.retain(|one| !stuck.contains(&one.id));
        list.sort_by_key(|one| one.oldest_ms);
        let Some(first) = list.first() else {
            return Ok(sum);
        };
        // As far as the next partition's oldest: then that one's turn has come.
        let other = list.get(1).map(|other| other.oldest_ms.saturating_add(1));
        let enough = |excess| if excess == 0 { u64::MAX } else { excess };
        let gone = store.expire(&Expiry {
            id: first.id,
            older_than_ms: other.unwrap_or(i64::MAX),
            below: limit(first),
            entries: enough(excess.entries),
            bytes: enough(excess.bytes),
        })?;
        if gone.units == 0 {
            stuck.push(first.id);
        }
        sum = sum.and(gone);
    }
}
