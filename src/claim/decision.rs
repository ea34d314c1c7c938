//! What is decided about a record, and why.

use std::fmt;

use crate::store::{Mark, PartitionId};

/// Why a record is handled or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decision {
    /// Its key has not been seen within the retention: it is handled.
    New,
    /// The same record again, at the same place: skipped. A restart, a rebalance or a rewind.
    Redelivery,
    /// Another record with the same key and the same value: skipped. A producer sent it again.
    Duplicate,
    /// Another record with the same key and a different value. What happens is the
    /// [policy](crate::Mismatch)'s choice.
    Mismatch,
    /// It carries no key. What happens is the [policy](crate::key::MissingKey)'s choice.
    MissingKey,
}

impl Decision {
    /// The decision as it stands in metrics and reports: `new`, `redelivery`, and so on.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Redelivery => "redelivery",
            Self::Duplicate => "duplicate",
            Self::Mismatch => "mismatch",
            Self::MissingKey => "missing_key",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Decides about a record whose key is known: the same place, the same content, or neither.
pub(crate) fn decide(mark: &Mark, id: PartitionId, offset: i64, value_digest: u64) -> Decision {
    if !mark.has_value(value_digest) {
        // Before the place: a topic that was created again uses its offsets for other records.
        Decision::Mismatch
    } else if mark.id == id && mark.offset == offset {
        Decision::Redelivery
    } else {
        Decision::Duplicate
    }
}

/// Whether a mark keeps the record at a place from being handled. Nothing took effect for a dead
/// letter: it answers for its own record alone, and another of the key is tried. A forgotten one
/// answers for none.
pub(crate) fn answers_for(mark: &Mark, id: PartitionId, offset: i64) -> bool {
    !mark.forgotten && (!mark.dead_lettered || (mark.id == id && mark.offset == offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_tells_redelivery_copy_and_mismatch_apart() {
        let here = PartitionId(1);
        let mark = Mark::first_seen(here, 5, 77);
        assert_eq!(decide(&mark, here, 5, 77), Decision::Redelivery);
        assert_eq!(decide(&mark, here, 6, 77), Decision::Duplicate);
        assert_eq!(decide(&mark, PartitionId(2), 5, 77), Decision::Duplicate);
        assert_eq!(decide(&mark, here, 6, 78), Decision::Mismatch);
        assert_eq!(decide(&mark, here, 5, 78), Decision::Mismatch);
    }

    #[test]
    fn a_forgotten_mark_answers_for_nothing_and_a_dead_letter_for_its_own_record() {
        let here = PartitionId(1);
        let done = Mark::first_seen(here, 5, 77);
        let dead = Mark {
            dead_lettered: true,
            ..done
        };
        let answers = |mark: &Mark| [5, 6].map(|offset| answers_for(mark, here, offset));
        assert_eq!(answers(&done), [true, true]);
        assert_eq!(answers(&dead), [true, false]);
        for mut mark in [done, dead] {
            mark.forgotten = true;
            assert_eq!(answers(&mark), [false, false]);
        }
    }
}
