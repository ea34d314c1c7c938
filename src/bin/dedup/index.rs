//! Which lines were seen, in memory: 21 to 32 bytes a line, whatever its length.

use std::ops::Range;

use siphasher::sip128::SipHasher13;

use crate::{
    chunk::Chunk,
    table::{FREE, Fingerprint, Table},
};

/// In the place of a fingerprint: the line has no key, and is nobody's copy.
pub(crate) const NO_KEY: Fingerprint = FREE;

/// How many lines are looked up together. The table of a large seen file is far bigger than the
/// processor's caches; asked for one at a time each line would wait for memory alone.
const GROUP_LINES: usize = 32;

/// Makes fingerprints: 128 bits under a key that is drawn anew for each run. At a thousand
/// million lines the chance that any two share one is below 2^-68, and without the key nobody
/// can craft two that do.
#[derive(Clone)]
pub(crate) struct Hasher(SipHasher13);

impl Hasher {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut key = [0; 16];
        getrandom::fill(&mut key)?;
        Ok(Self(SipHasher13::new_with_key(&key)))
    }

    /// The one fingerprint that is taken passes for its neighbour, which is one more chance of a
    /// collision beside those above.
    pub(crate) fn fingerprint(&self, key: &[u8]) -> Fingerprint {
        let hash = self.0.hash(key);
        if hash.h1 == 0 && hash.h2 == 0 {
            return [1, 0];
        }
        [hash.h1, hash.h2]
    }
}

pub(crate) struct Index {
    hasher: Hasher,
    seen: Table,
}

impl Index {
    pub(crate) fn new(hasher: Hasher) -> Self {
        Self {
            hasher,
            seen: Table::new(),
        }
    }

    pub(crate) fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Remembers the lines of a chunk and appends those to `new` that were not there before.
    /// Returns how many those are.
    pub(crate) fn insert(&mut self, chunk: &Chunk, new: &mut Vec<u8>) -> u64 {
        let mut count = 0;
        // Lines that lie side by side and are all new are copied at once.
        let mut run = 0..0;
        let mut take = |line: Range<usize>| {
            count += 1;
            if run.end == line.start {
                run.end = line.end;
            } else {
                new.extend_from_slice(&chunk.bytes()[run.clone()]);
                run = line;
            }
        };
        let mut start = 0;
        let groups = chunk.fingerprints().chunks(GROUP_LINES);
        for (group, ends) in groups.zip(chunk.ends().chunks(GROUP_LINES)) {
            self.seen.touch(group);
            for (fingerprint, end) in group.iter().zip(ends) {
                if *fingerprint == NO_KEY || self.seen.insert(*fingerprint) {
                    take(start..*end);
                }
                start = *end;
            }
        }
        new.extend_from_slice(&chunk.bytes()[run]);
        count
    }

    /// Remembers those lines of a chunk that have a key.
    pub(crate) fn remember_all(&mut self, chunk: &Chunk) {
        for group in chunk.fingerprints().chunks(GROUP_LINES) {
            self.seen.touch(group);
            for fingerprint in group.iter().filter(|one| **one != NO_KEY) {
                self.seen.insert(*fingerprint);
            }
        }
    }

    /// Remembers a key, given without its terminator.
    pub(crate) fn remember(&mut self, key: &[u8]) {
        let fingerprint = self.hasher.fingerprint(key);
        self.seen.insert(fingerprint);
    }

    /// Whether a key, given without its terminator, was seen.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.seen.contains(self.hasher.fingerprint(key))
    }
}
