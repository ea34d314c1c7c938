//! Moments and choices that differ in each run, and are told.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SEED: &str = "IDEMPOTENT_CONSUMER_FAULTS_SEED";

/// `SplitMix64`.
pub(crate) struct Chance(u64);

impl Chance {
    /// From the environment, or from the clock. What a machine makes of the moments differs all
    /// the same.
    pub(crate) fn told(test: &str) -> Self {
        let seed = std::env::var(SEED).map_or_else(
            |_| {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
                u64::from(now.subsec_nanos())
            },
            |seed| seed.parse().expect("a seed is a number"),
        );
        println!("{test}: {SEED}={seed}");
        Self(seed)
    }

    pub(crate) fn from(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.next() % count == 0
    }

    pub(crate) fn time_below(&mut self, limit: Duration) -> Duration {
        let nanos = u64::try_from(limit.as_nanos()).unwrap();
        Duration::from_nanos(self.next() % nanos.max(1))
    }

    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    pub(crate) fn shuffled<T: Copy>(&mut self, list: &[T]) -> Vec<T> {
        let mut left = list.to_vec();
        let mut mixed = Vec::new();
        while !left.is_empty() {
            mixed.push(left.swap_remove(self.below(left.len())));
        }
        mixed
    }
}
