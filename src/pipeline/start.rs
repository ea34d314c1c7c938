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
    let lease = ledger.lease();
    let gaps = ledger.engine().store().gaps(lease.id);
    let next = lease.head.map(|head| head.next);
    // One record early: it shows whether the topic is still the one that was worked on.
    let anchor = lease.head.and_then(|head| head.anchor);
    let early = anchor.and_then(|anchor| NextOffset::new(anchor.offset));
    // And not behind what is left undone.
    let early = [early.or(next), gaps.first()].into_iter().flatten().min();
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
    let unfinished = gaps.first_unfinished();
    // A group that was set to the start has committed 0, which no store is behind. What was left
    // undone below the committed offset, another member has done.
    let reached = unfinished.or(next).unwrap_or(NextOffset::ZERO);
    let behind = committed > reached;
    match restore {
        Restore::FromSource if behind => Ok((early.map_or(Start::Oldest, Start::At), committed)),
        Restore::Refuse if behind => Err(Error::StoreBehind {
            partition: ledger.partition().clone(),
            head: reached,
            committed,
        }),
        _ if Some(committed) == next || gaps.first().is_some_and(|first| first < committed) => {
            let ignored = if behind { committed } else { NextOffset::ZERO };
            Ok((early.map_or(Start::Committed, Start::At), ignored))
        }
        _ => Ok((Start::Committed, NextOffset::ZERO)),
    }
}

/// Where the group counts as standing, for a store that writes marks together with what the handlers
/// write: what it does not know has not happened, whatever the group has committed. A database that
/// was put back from a copy lacks both; to read the stretch for its keys would lose what the handlers
/// wrote.
pub(super) fn as_the_store_says(
    ledger: &Ledger,
    committed: Option<NextOffset>,
) -> Option<NextOffset> {
    let lease = ledger.lease();
    let Some(head) = lease.head else {
        // It has never worked on the partition: somebody else has.
        return committed;
    };
    let gaps = ledger.engine().store().gaps(lease.id);
    let reached = gaps.first().unwrap_or(head.next);
    let ahead = committed.filter(|committed| *committed > reached);
    if let Some(committed) = ahead {
        tracing::warn!(
            partition = %ledger.partition(), from = %reached, to = %committed,
            "the group is ahead of the store: what lies between is not there, and is handled"
        );
    }
    committed.map(|committed| committed.min(reached))
}
