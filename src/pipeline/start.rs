//! Where a partition begins, by what the store and the group say of it.

use super::settings::Restore;
use crate::engine::Ledger;
use crate::error::Error;
use crate::record::NextOffset;
use crate::source::Start;

/// Where a partition is read from, and up to where it is read for its keys only.
pub(super) fn decide(
    ledger: &Ledger,
    committed: Option<NextOffset>,
    restore: Restore,
) -> Result<(Start, NextOffset), Error> {
    let head = ledger.lease().head;
    let next = head.map(|head| head.next);
    // One record early: it shows whether the topic is still the one that was worked on.
    let early = head
        .and_then(|head| head.anchor)
        .and_then(|a| NextOffset::new(a.offset));
    let early = early.or(next);
    let Some(committed) = committed else {
        // The group forgot what the store knows: a policy of `latest` would pass over what
        // came meanwhile.
        let start = if next.is_some() {
            Start::Oldest
        } else {
            Start::Committed
        };
        return Ok((start, NextOffset::ZERO));
    };
    // A group that was set to the start has committed 0, which no store is behind.
    let behind = committed > next.unwrap_or(NextOffset::ZERO);
    match restore {
        Restore::FromSource if behind => Ok((early.map_or(Start::Oldest, Start::At), committed)),
        Restore::Refuse if behind => Err(Error::StoreBehind {
            partition: ledger.partition().clone(),
            head: next.unwrap_or(NextOffset::ZERO),
            committed,
        }),
        _ if Some(committed) == next => {
            Ok((early.map_or(Start::Committed, Start::At), NextOffset::ZERO))
        }
        _ => Ok((Start::Committed, NextOffset::ZERO)),
    }
}
