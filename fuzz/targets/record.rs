//! The store's record decoder: bytes that lie under a key of the log, whatever they are.
//!
//! The checksum is put right first. It would keep all but a few inputs from the decoder, and what
//! has a right one may still be of another version, or of another program.
#![no_main]

use idempotent_consumer::store::fuzzing::encoded_again;
use libfuzzer_sys::{Corpus, fuzz_target};

/// In front of each input: which of the two lengths a key has.
const LONG_KEY: u8 = 1;

fuzz_target!(|input: &[u8]| -> Corpus {
    let Some((kind, rest)) = input.split_first() else {
        return Corpus::Reject;
    };
    let key_bytes = if *kind == LONG_KEY { 16 } else { 12 };
    let Some((key, body)) = rest.split_at_checked(key_bytes) else {
        return Corpus::Reject;
    };
    // As it is: the last four bytes are hardly ever its checksum.
    let _refused = encoded_again(key, body);
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(key);
    checksum.update(body);
    let record = [body, &checksum.finalize().to_le_bytes()].concat();
    if let Some(again) = encoded_again(key, &record) {
        assert_eq!(
            encoded_again(key, &again).as_ref(),
            Some(&again),
            "what was read is not what was written"
        );
    }
    Corpus::Keep
});
