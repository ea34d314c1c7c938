//! Keys like fingerprints or random UUIDs: 16 bytes, no order, no repeats.

/// The key of a number. Its second half is the number, so that who handles a record can tell
/// which one it was.
#[must_use]
pub fn key(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    let (scattered, plain) = bytes.split_at_mut(8);
    scattered.copy_from_slice(&scatter(number).to_be_bytes());
    plain.copy_from_slice(&number.to_be_bytes());
    bytes
}

/// The number that [`key`] was made of; of anything else, some number.
#[must_use]
pub fn number(key: &[u8]) -> u64 {
    let plain = key.iter().rev().take(8).rev();
    plain.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// One step of a generator whose outputs are all different (splitmix64).
#[must_use]
pub fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
