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

/// As `decide`, for a store that writes marks together with what the handlers write, and where the
/// group counts as standing then.
///
/// What such a store does not know has not happened, whatever the group has committed: a database
/// that was put back from a copy lacks both, and to read the stretch for its keys would lose what the
/// handlers wrote. But for what others did before the store first worked on the partition.
pub(super) fn beside_the_rows(
    ledger: &Ledger,
    committed: Option<NextOffset>,
    restore: Restore,
) -> Result<(Option<NextOffset>, Start, NextOffset), Error> {
    let (lease, store) = (ledger.lease(), ledger.engine().store());
    let standing = match (lease.head, committed) {
        (None, _) | (_, None) => committed,
        (Some(head), Some(committed)) => {
            let gaps = store.gaps(lease.id);
            let reached = gaps.first().unwrap_or(head.next);
            let known = reached.max(store.restore_until(lease.id));
            if committed > known {
                tracing::warn!(
                    partition = %ledger.partition(), from = %known, to = %committed,
                    "the group is ahead of the store: what lies between is not there, and is handled"
                );
            }
            Some(committed.min(known))
        }
    };
    let (start, until) = decide(ledger, standing, restore)?;
    if until > NextOffset::ZERO {
        store.restores(lease, until)?;
    }
    let start = match (start, standing) {
        // The group's own may lie further on.
        (Start::Committed, Some(standing)) => Start::At(standing),
        _ => start,
    };
    Ok((standing, start, until))
}
