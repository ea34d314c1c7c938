//! What below a head is not done.

use crate::record::NextOffset;

/// A run of offsets below a head that are not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first offset.
    pub from: i64,
    /// Behind the last one; above [`from`](Gap::from).
    pub to: i64,
    /// Whether it was done and then forgotten on purpose, so that it is to be done again whatever
    /// the group has committed. Else it was never finished.
    pub forgotten: bool,
}

/// The gaps below a head, in the order of their offsets, none touching another of its kind.
///
/// Work that is done out of order leaves them for as long as something is under way. An offset in
/// one need not name a record: compaction and transactions leave none at some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps(Vec<Gap>);

impl Gaps {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The gaps, from the lowest up.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Gap> + '_ {
        self.0.iter().copied()
    }

    /// Where the lowest one begins.
    #[must_use]
    pub fn first(&self) -> Option<NextOffset> {
        self.0.first().and_then(|gap| NextOffset::new(gap.from))
    }

    /// Where the lowest one begins that was never finished.
    #[must_use]
    pub fn first_unfinished(&self) -> Option<NextOffset> {
        let gap = self.0.iter().find(|gap| !gap.forgotten)?;
        NextOffset::new(gap.from)
    }

    /// The gap that an offset lies in.
    #[must_use]
    pub fn at(&self, offset: i64) -> Option<Gap> {
        let behind = self.0.partition_point(|gap| gap.to <= offset);
        let gap = self.0.get(behind).copied();
        gap.filter(|gap| gap.from <= offset)
    }

    /// Takes a gap in. Where it overlaps others, what is forgotten stays so.
    pub fn open(&mut self, gap: Gap) {
        if gap.from >= gap.to {
            return;
        }
        let mut pieces = Vec::with_capacity(self.0.len() + 2);
        let mut from = gap.from;
        for old in &self.0 {
            // The part of the new one before this one; over a forgotten one the old one wins, over
            // an unfinished one the new one does if it is forgotten.
            if gap.forgotten && !old.forgotten {
                let before = Gap {
                    to: old.to.min(gap.from),
                    ..*old
                };
                let behind = Gap {
                    from: old.from.max(gap.to),
                    ..*old
                };
                pieces.extend([before, behind]);
            } else {
                pieces.push(Gap {
                    from,
                    to: gap.to.min(old.from),
                    ..gap
                });
                from = from.max(old.to);
                pieces.push(*old);
            }
        }
        pieces.push(Gap { from, ..gap });
        pieces.retain(|piece| piece.from < piece.to);
        pieces.sort_by_key(|piece| piece.from);
        self.0.clear();
        for piece in pieces {
            self.push(piece);
        }
    }

    /// Adds a gap behind all others.
    pub(crate) fn push(&mut self, gap: Gap) {
        match self.0.last_mut() {
            Some(last) if last.to == gap.from && last.forgotten == gap.forgotten => {
                last.to = gap.to;
            }
            _ => self.0.push(gap),
        }
    }

    /// Everything below `offset` is done, or will never come.
    pub(crate) fn close_below(&mut self, offset: i64) {
        let keep = self.0.partition_point(|gap| gap.to <= offset);
        self.0.drain(..keep);
        if let Some(first) = self.0.first_mut() {
            first.from = first.from.max(offset);
        }
    }

    /// These gaps, and single offsets in their order with whether they were forgotten.
    pub(crate) fn with(&self, offsets: impl Iterator<Item = (i64, bool)>) -> Self {
        let mut all = self.clone();
        for (from, forgotten) in offsets {
            let to = from + 1;
            let gap = Gap {
                from,
                to,
                forgotten,
            };
            match all.0.last() {
                Some(last) if last.to > from => all.open(gap),
                _ => all.push(gap),
            }
        }
        all
    }

    /// Whether they are what a unit that ends at `next` may have.
    pub(super) fn fit_below(&self, next: NextOffset) -> bool {
        let mut end = 0;
        let in_order = self.0.iter().all(|gap| {
            let fits = gap.from >= end && gap.to > gap.from;
            end = gap.to;
            fits
        });
        in_order && end <= next.get()
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_wrap, reason = "offsets below a hundred")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gap(from: i64, to: i64, forgotten: bool) -> Gap {
        Gap {
            from,
            to,
            forgotten,
        }
    }

    #[test]
    fn an_offset_is_found_in_its_gap_alone() {
        let mut gaps = Gaps::default();
        gaps.open(gap(5, 7, false));
        gaps.open(gap(10, 11, true));
        assert_eq!(gaps.first(), NextOffset::new(5));
        let found: Vec<_> = (4..12)
            .filter(|offset| gaps.at(*offset).is_some())
            .collect();
        assert_eq!(found, [5, 6, 10]);
        gaps.close_below(6);
        assert_eq!(gaps.first(), NextOffset::new(6));
        gaps.close_below(10);
        assert_eq!(gaps.iter().collect::<Vec<_>>(), [gap(10, 11, true)]);
    }

    proptest! {
        #[test]
        fn gaps_are_what_a_list_of_offsets_would_be(
            steps in prop::collection::vec((0_usize..40, 1_usize..6, any::<bool>()), 1..12),
            below in 0_usize..45,
            single in prop::collection::btree_map(0_usize..50, any::<bool>(), 0..6),
        ) {
            let mut gaps = Gaps::default();
            let mut list = [None; 60];
            for (from, len, forgotten) in steps {
                let end = from + len;
                gaps.open(gap(from as i64, end as i64, forgotten));
                for place in &mut list[from..end] {
                    *place = Some(place.unwrap_or(false) || forgotten);
                }
            }
            gaps.close_below(below as i64);
            list[..below].fill(None);
            let next = NextOffset::new(50).unwrap();
            let gaps = gaps.with(single.iter().map(|(offset, forgotten)| (*offset as i64, *forgotten)));
            for (offset, forgotten) in single {
                let place = &mut list[offset];
                *place = Some(place.unwrap_or(false) || forgotten);
            }
            prop_assert!(gaps.fit_below(next));
            for (offset, expected) in (0..).zip(list) {
                prop_assert_eq!(gaps.at(offset).map(|gap| gap.forgotten), expected);
            }
        }
    }
}
