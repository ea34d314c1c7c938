//! From an identity to 128 bits, and to the token that a handler may hand on.

use std::fmt::{self, Write as _};
use std::hash::Hasher as _;

use sha2::Digest as _;
use siphasher::sip128::{Hasher128 as _, SipHasher13};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Identity, Scope};
use crate::record::TopicPartition;

/// 128 bits that stand for a key and its scope.
///
/// At 10^9 keys and 10^12 look-ups the chance of one false match is 3 in 10^18. The hash is keyed
/// with a secret of the store, so that nobody who can send records can craft a match.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub(crate) [u8; 16]);

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Fingerprint {
    /// A fingerprint from its bytes.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The low half: uniformly spread already, so tables need no further hashing.
    pub(crate) fn low(self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|at| self.0[at]))
    }
}

/// The secret under which a store hashes keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey(pub(crate) [u8; 16]);

impl HashKey {
    /// A key from 16 bytes: random ones, kept with the store.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(..)")
    }
}

/// Hashes the keys of one partition.
#[derive(Clone)]
pub(crate) struct Fingerprinter {
    /// Already fed with the scope, which is the same for every record of the partition.
    scoped: SipHasher13,
    seed: u64,
    token_prefix: Vec<u8>,
}

impl Fingerprinter {
    pub(crate) fn new(key: &HashKey, group: &str, scope: Scope, at: &TopicPartition) -> Self {
        let mut prefix = Vec::new();
        push_part(&mut prefix, at.topic().as_bytes());
        match scope {
            Scope::Topic => push_part(&mut prefix, b""),
            Scope::Partition => push_part(&mut prefix, &at.partition().to_le_bytes()),
        }
        let mut scoped = SipHasher13::new_with_key(&key.0);
        scoped.write(&prefix);
        // The token must outlive the store and its secret: it depends on names alone.
        let mut token_prefix = Vec::new();
        push_part(&mut token_prefix, group.as_bytes());
        token_prefix.extend_from_slice(&prefix);
        Self {
            scoped,
            seed: Fingerprint(key.0).low(),
            token_prefix,
        }
    }

    pub(crate) fn fingerprint(&self, identity: &Identity<'_>) -> Fingerprint {
        let mut hasher = self.scoped;
        feed(identity, |bytes| hasher.write(bytes));
        Fingerprint(hasher.finish128().as_bytes())
    }

    /// 32 hexadecimal digits, the same at every attempt, on every machine, for ever.
    pub(crate) fn token(&self, identity: &Identity<'_>) -> String {
        let mut hasher = sha2::Sha256::new();
        hasher.update(&self.token_prefix);
        feed(identity, |bytes| hasher.update(bytes));
        let mut token = String::with_capacity(32);
        for byte in hasher.finalize().iter().take(16) {
            // Writing to a string cannot fail.
            let _ = write!(token, "{byte:02x}");
        }
        token
    }

    /// The digest of a value, absent and empty told apart: what tells a copy from another record
    /// under the same key.
    pub(crate) fn digest(&self, value: Option<&[u8]>) -> u64 {
        value.map_or(0, |value| xxh3_64_with_seed(value, self.seed))
    }
}

/// Hands the identity to a hash so that no two identities give the same run of bytes: a letter for
/// the kind, each part behind its length.
fn feed(identity: &Identity<'_>, mut sink: impl FnMut(&[u8])) {
    let mut part = |letter: u8, bytes: &[u8]| {
        let mut head = [letter; 9];
        head[1..].copy_from_slice(&length(bytes));
        sink(&head);
        sink(bytes);
    };
    match identity {
        Identity::Bytes(bytes) => part(b'b', bytes),
        Identity::Parts(parts) => parts.iter().for_each(|bytes| part(b'p', bytes)),
        Identity::Place(partition, offset) => {
            let mut place = [0; 12];
            place[..4].copy_from_slice(&partition.to_le_bytes());
            place[4..].copy_from_slice(&offset.to_le_bytes());
            part(b'c', &place);
        }
    }
}

fn push_part(to: &mut Vec<u8>, part: &[u8]) {
    to.extend_from_slice(&length(part));
    to.extend_from_slice(part);
}

fn length(bytes: &[u8]) -> [u8; 8] {
    (bytes.len() as u64).to_le_bytes()
}
