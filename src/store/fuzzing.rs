//! A way to the record decoder for `fuzz/`. Built under `--cfg fuzzing` alone, which no user sets.

use super::format;

/// What a record is when it is read and written again; `None` for one that is refused.
#[must_use]
pub fn encoded_again(key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    let read = format::decode(key, value).ok()?;
    Some(format::encode(&read))
}
