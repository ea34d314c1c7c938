//! A set of fingerprints, 21 to 32 bytes for each.
//!
//! Open addressing with linear probing: a fingerprint lies in one line of the processor's cache, or
//! in the next, and nothing else is kept for it. The table is cut into segments that grow on their
//! own, so that a large one is never held twice while it grows.

use std::hint;

/// 128 bits under a secret key, so evenly spread that its parts serve as places.
pub(crate) type Fingerprint = [u64; 2];

/// What stands in a slot that is free: nobody's fingerprint.
pub(crate) const FREE: Fingerprint = [0; 2];

const SEGMENTS: usize = 16;
const SEGMENT_SLOTS_MIN: usize = 64;

/// Three quarters: above it, a probe goes over more than one line of the cache.
const fn room(slots: usize) -> usize {
    slots / 4 * 3
}

pub(crate) struct Table {
    segments: [Segment; SEGMENTS],
}

#[derive(Default)]
struct Segment {
    slots: Vec<Fingerprint>,
    taken: usize,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            segments: Default::default(),
        }
    }

    /// Makes room for so many more, so that it need not grow on the way.
    pub(crate) fn reserve(&mut self, fingerprints: usize) {
        // An eighth more than the mean: a segment gets more or less than its share.
        let share = fingerprints / SEGMENTS;
        for segment in &mut self.segments {
            let wanted = (segment.taken + share + share / 8) / 3 * 4;
            if wanted > segment.slots.len() {
                segment.grow(wanted.max(SEGMENT_SLOTS_MIN));
            }
        }
    }

    /// Brings the places of many into the cache. Their waits for memory overlap, which those of
    /// [`Self::insert`] would not: each decides where the next has to look.
    pub(crate) fn touch(&self, fingerprints: &[Fingerprint]) {
        let mut seen = 0;
        for fingerprint in fingerprints {
            let segment = &self.segments[segment(*fingerprint)];
            if let Some(slot) = segment.slots.get(segment.place(*fingerprint)) {
                seen ^= slot[0];
            }
        }
        hint::black_box(seen);
    }

    pub(crate) fn contains(&self, fingerprint: Fingerprint) -> bool {
        let segment = &self.segments[segment(fingerprint)];
        !segment.slots.is_empty() && segment.slots[segment.find(fingerprint)] == fingerprint
    }

    /// `false` when it was there before.
    pub(crate) fn insert(&mut self, fingerprint: Fingerprint) -> bool {
        self.segments[segment(fingerprint)].insert(fingerprint)
    }
}

/// The low bits of one half; the place within takes the high bits of the other.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low bits are what is wanted"
)]
fn segment(fingerprint: Fingerprint) -> usize {
    fingerprint[1] as usize % SEGMENTS
}

impl Segment {
    /// Where a fingerprint lies where nothing is in its way. Any length will do, not only a power
    /// of two, so that growing by a half is possible.
    #[expect(clippy::cast_possible_truncation, reason = "below a length")]
    fn place(&self, fingerprint: Fingerprint) -> usize {
        ((u128::from(fingerprint[0]) * self.slots.len() as u128) >> 64) as usize
    }

    /// Where it is, or the free slot where it would be. There must be slots; some are always free.
    fn find(&self, fingerprint: Fingerprint) -> usize {
        let mut place = self.place(fingerprint);
        while self.slots[place] != fingerprint && self.slots[place] != FREE {
            place += 1;
            if place == self.slots.len() {
                place = 0;
            }
        }
        place
    }

    fn insert(&mut self, fingerprint: Fingerprint) -> bool {
        if self.taken >= room(self.slots.len()) {
            let slots = self.slots.len() + self.slots.len() / 2;
            self.grow(slots.max(SEGMENT_SLOTS_MIN));
        }
        let place = self.find(fingerprint);
        let new = self.slots[place] == FREE;
        if new {
            self.slots[place] = fingerprint;
            self.taken += 1;
        }
        new
    }

    fn grow(&mut self, slots: usize) {
        let smaller = std::mem::replace(&mut self.slots, vec![FREE; slots]);
        // In the order of their places, so that both are gone through from one end to the other.
        for fingerprint in smaller.into_iter().filter(|slot| *slot != FREE) {
            let place = self.find(fingerprint);
            self.slots[place] = fingerprint;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set(
            // Few values in each half, so that many collide in their place or in one half.
            given in prop::collection::vec((0_u64..40, 1_u64..40, any::<bool>()), 0..2_000),
            reserved in 0_usize..5_000,
        ) {
            let (mut table, mut model) = (Table::new(), HashSet::new());
            table.reserve(reserved);
            for (low, high, far) in given {
                let fingerprint = [if far { u64::MAX - low } else { low }, high];
                prop_assert_eq!(table.contains(fingerprint), model.contains(&fingerprint));
                table.touch(&[fingerprint]);
                prop_assert_eq!(table.insert(fingerprint), model.insert(fingerprint));
                prop_assert!(table.contains(fingerprint));
            }
        }
    }

    #[test]
    fn it_takes_at_most_32_bytes_each_and_room_that_was_made_is_enough() {
        let spread = |number: u64| {
            let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            [number.wrapping_mul(0xbf58_476d_1ce4_e5b9), number >> 7]
        };
        let slots = |table: &Table| -> Vec<usize> {
            let of_each = table.segments.iter().map(|segment| segment.slots.len());
            of_each.collect()
        };
        let (mut grown, mut made) = (Table::new(), Table::new());
        made.reserve(100_000);
        let before = slots(&made);
        for number in 0..100_000 {
            assert!(grown.insert(spread(number)) && made.insert(spread(number)));
        }
        assert_eq!(slots(&made), before);
        for table in [grown, made] {
            let bytes = slots(&table).iter().sum::<usize>() * size_of::<Fingerprint>();
            assert!(bytes <= 32 * 100_000 + 32 * SEGMENT_SLOTS_MIN, "{bytes}");
        }
    }
}
