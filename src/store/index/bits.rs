//! Numbers of any width, one behind the other.

/// Appends numbers; the lowest bit comes first.
#[derive(Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
    pending: u128,
    pending_bits: u32,
}

impl Writer {
    /// Begins behind bytes that are there already.
    pub(super) fn behind(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            ..Self::default()
        }
    }

    /// The low `width` bits of a number, at most 64.
    pub(super) fn push(&mut self, number: u64, width: u32) {
        self.pending |= u128::from(number & mask(width)) << self.pending_bits;
        self.pending_bits += width;
        if self.pending_bits >= 64 {
            let [low, ..] = words(self.pending);
            self.bytes.extend_from_slice(&low.to_le_bytes());
            self.pending >>= 64;
            self.pending_bits -= 64;
        }
    }

    /// What was written, filled up with zeros to a whole byte.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let rest = self.pending.to_le_bytes();
        let len = self.pending_bits.div_ceil(8) as usize;
        self.bytes
            .extend_from_slice(rest.get(..len).unwrap_or(&rest));
        self.bytes
    }
}

/// The number of `width` bits at a bit, at most 64. Sixteen bytes must follow the byte that it
/// begins in, whatever is in them; where they do not, the answer is 0.
pub(super) fn read(bytes: &[u8], bit: usize, width: u32) -> u64 {
    let from = bytes.get(bit / 8..).and_then(|rest| rest.first_chunk());
    let word = from.map_or(0, |chunk: &[u8; 16]| u128::from_le_bytes(*chunk));
    let [low, ..] = words(word >> (bit % 8));
    low & mask(width)
}

/// How many bits a number needs.
pub(super) fn width(number: u64) -> u32 {
    64 - number.leading_zeros()
}

fn mask(width: u32) -> u64 {
    u64::MAX.checked_shr(64 - width.min(64)).unwrap_or(0)
}

#[expect(clippy::cast_possible_truncation, reason = "split into its halves")]
fn words(word: u128) -> [u64; 2] {
    [word as u64, (word >> 64) as u64]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back_at_any_width(
            numbers in prop::collection::vec((any::<u64>(), 0_u32..=64), 0..50),
            before in 0_usize..9,
        ) {
            let mut writer = Writer::behind(vec![0xff; before]);
            for (number, width) in &numbers {
                writer.push(*number, *width);
            }
            let mut bytes = writer.finish();
            bytes.extend([0xa5; 16]);
            let mut at = before * 8;
            for (number, width) in numbers {
                prop_assert_eq!(read(&bytes, at, width), number & mask(width));
                at += width as usize;
            }
        }
    }
}
