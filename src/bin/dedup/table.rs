//! A set of fingerprints, 21 to 32 bytes for each.
//!
//! Open addressing with linear probing: a fingerprint lies in one line of the processor's cache, or
//! in the next, and nothing else is kept for it. The table is cut into segments that grow on their
//! own and in place, so that nothing is held twice while it grows.

use std::{hint, mem};

/// 128 bits under a secret key, so evenly spread that its parts serve as places.
pub(crate) type Fingerprint = [u64; 2];

/// What stands in a slot that is free: nobody's fingerprint.
pub(crate) const FREE: Fingerprint = [0; 2];

const SEGMENTS: usize = 16;
const SEGMENT_SLOTS_MIN: usize = 64;

/// What is set aside behind the last home; more is taken where it does not do.
const BEHIND_HOMES: usize = 64;

/// Three quarters: above it, a probe goes over more than one line of the cache.
const fn room(slots: usize) -> usize {
    slots / 4 * 3
}

pub(crate) struct Table {
    segments: [Segment; SEGMENTS],
}

/// As many slots as homes, and behind them what the last ones had no room for.
#[derive(Default)]
struct Segment {
    slots: Vec<Fingerprint>,
    homes: usize,
    taken: usize,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            segments: Default::default(),
        }
    }

    /// Brings the places of many into the cache. Their waits for memory overlap, which those of
    /// [`Self::insert`] would not: each decides where the next has to look.
    pub(crate) fn touch(&self, fingerprints: &[Fingerprint]) {
        let mut seen = 0;
        for fingerprint in fingerprints {
            let segment = &self.segments[segment(*fingerprint)];
            if let Some(slot) = segment.slots.get(segment.home(*fingerprint)) {
                seen ^= slot[0];
            }
        }
        hint::black_box(seen);
    }

    pub(crate) fn contains(&self, fingerprint: Fingerprint) -> bool {
        let segment = &self.segments[segment(fingerprint)];
        segment.slots.get(segment.find(fingerprint)) == Some(&fingerprint)
    }

    /// `false` when it was there before.
    pub(crate) fn insert(&mut self, fingerprint: Fingerprint) -> bool {
        self.segments[segment(fingerprint)].insert(fingerprint)
    }
}

/// The low bits of one half; the home within takes the high bits of the other.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low bits are what is wanted"
)]
fn segment(fingerprint: Fingerprint) -> usize {
    fingerprint[1] as usize % SEGMENTS
}

impl Segment {
    /// Where a fingerprint lies where nothing is in its way. Any number of homes will do, not only
    /// a power of two, so that growing by a half is possible; and homes are in the order of the
    /// fingerprints, so that growing moves each of them up.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is below the number of homes"
    )]
    fn home(&self, fingerprint: Fingerprint) -> usize {
        ((u128::from(fingerprint[0]) * self.homes as u128) >> 64) as usize
    }

    /// Where it is, or the free slot where it would be, which may be the end of the slots.
    fn find(&self, fingerprint: Fingerprint) -> usize {
        let home = self.home(fingerprint);
        let slots = self.slots.get(home..).unwrap_or_default();
        let there = |slot: &Fingerprint| *slot == fingerprint || *slot == FREE;
        home + slots.iter().position(there).unwrap_or(slots.len())
    }

    /// `false` when it was there before.
    fn place(&mut self, fingerprint: Fingerprint) -> bool {
        let place = self.find(fingerprint);
        if place == self.slots.len() {
            self.slots.push(FREE);
        }
        let new = self.slots[place] == FREE;
        self.slots[place] = fingerprint;
        new
    }

    fn insert(&mut self, fingerprint: Fingerprint) -> bool {
        if self.taken >= room(self.homes) {
            self.grow((self.homes + self.homes / 2).max(SEGMENT_SLOTS_MIN));
        }
        let new = self.place(fingerprint);
        self.taken += usize::from(new);
        new
    }

    /// From the last slot down, a run of neighbours at a time. A home never moves down, so that a
    /// run's new places are its own old ones or lie behind those: nobody is placed among those that
    /// are still to be moved, who would leave a gap before him.
    fn grow(&mut self, homes: usize) {
        let mut place = self.slots.len();
        self.homes = homes;
        let room = homes + BEHIND_HOMES;
        self.slots.reserve_exact(room.saturating_sub(place));
        self.slots.resize(homes.max(place), FREE);
        let mut run = Vec::new();
        while place > 0 {
            place -= 1;
            let here = mem::replace(&mut self.slots[place], FREE);
            if here != FREE {
                run.push(here);
            }
            if here == FREE || place == 0 {
                while let Some(fingerprint) = run.pop() {
                    self.place(fingerprint);
                }
            }
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
        ) {
            let (mut table, mut model) = (Table::new(), HashSet::new());
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
    fn it_takes_at_most_32_bytes_each() {
        let mut table = Table::new();
        for number in 1..=300_000_u64 {
            let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let spread = [number.wrapping_mul(0xbf58_476d_1ce4_e5b9), number >> 7];
            assert!(table.insert(spread));
            assert!(table.contains(spread));
        }
        let of_each = table
            .segments
            .iter()
            .map(|segment| segment.slots.capacity());
        let bytes = of_each.sum::<usize>() * size_of::<Fingerprint>();
        let behind = SEGMENTS * BEHIND_HOMES * size_of::<Fingerprint>();
        assert!(bytes <= 32 * 300_000 + behind, "{bytes}");
    }
}
