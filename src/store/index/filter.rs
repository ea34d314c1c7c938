//! A filter over the keys of a part of a run: most keys that are not there are told without a read.

use xorf::{BinaryFuse8, BinaryFuse8Ref, DmaSerializable as _, Filter as _, FilterRef as _};

const DESCRIPTOR_BYTES: usize = BinaryFuse8::DESCRIPTOR_LEN;

/// A binary fuse filter of 8 bits: about 9.1 bits a key; of 256 keys that are not there, one is
/// taken for one that may be.
pub(super) struct Filter {
    descriptor: [u8; DESCRIPTOR_BYTES],
    bytes: Box<[u8]>,
}

impl Filter {
    /// A filter over keys without repetitions; takes about 30 bytes a key while it works.
    pub(super) fn build(keys: &[u64]) -> Result<Self, &'static str> {
        let filter = BinaryFuse8::try_from(keys)?;
        let mut descriptor = [0; DESCRIPTOR_BYTES];
        filter.dma_copy_descriptor_to(&mut descriptor);
        Ok(Self {
            descriptor,
            bytes: filter.fingerprints,
        })
    }

    /// What was written; `None` where it would lead out of its own bytes.
    pub(super) fn from_parts(descriptor: &[u8], bytes: &[u8]) -> Option<Self> {
        let descriptor: [u8; DESCRIPTOR_BYTES] = descriptor.try_into().ok()?;
        let [segment, mask, segments] = [8, 12, 16].map(|at| {
            let number = descriptor.get(at..).and_then(|rest| rest.first_chunk());
            number.map_or(0, |number: &[u8; 4]| u32::from_le_bytes(*number))
        });
        let end = u64::from(segments) + 2 * u64::from(segment);
        let whole = segment.is_power_of_two() && mask == segment - 1 && segments % segment == 0;
        (whole && end <= bytes.len() as u64).then(|| Self {
            descriptor,
            bytes: bytes.into(),
        })
    }

    pub(super) fn parts(&self) -> (&[u8], &[u8]) {
        (&self.descriptor, &self.bytes)
    }

    /// Whether the key may be there. `false` is certain.
    pub(super) fn may_hold(&self, key: u64) -> bool {
        BinaryFuse8Ref::from_dma(&self.descriptor, &self.bytes).contains(&key)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_key_is_found_before_and_after_it_was_written(
            keys in prop::collection::btree_set(any::<u64>(), 1..200),
        ) {
            let keys: Vec<_> = keys.into_iter().collect();
            let filter = Filter::build(&keys).unwrap();
            let (descriptor, bytes) = filter.parts();
            let read = Filter::from_parts(descriptor, bytes).unwrap();
            for key in keys {
                prop_assert!(filter.may_hold(key) && read.may_hold(key), "{} is missing", key);
            }
        }
    }

    #[test]
    fn of_keys_that_are_not_there_one_in_256_is_taken_for_one_that_may_be() {
        let key = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let keys: Vec<_> = (0..20_000).map(key).collect();
        let filter = Filter::build(&keys).unwrap();
        let others = (20_000..220_000).map(key);
        let taken = others.filter(|other| filter.may_hold(*other)).count();
        assert!((400..1600).contains(&taken), "{taken} of 200,000");
    }
}
