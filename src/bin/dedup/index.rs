//! Which lines were seen, in memory: 16 bytes a line, whatever its length.

use std::hint;

use hashbrown::{HashTable, hash_table::Entry};
use siphasher::sip128::SipHasher13;

use crate::lines;

/// A line's fingerprint: 128 bits under a key that is drawn anew for each run. At a thousand
/// million lines the chance that any two share one is below 2^-68, and without the key nobody
/// can craft two that do.
type Fingerprint = (u64, u64);

/// How many lines are looked up together. The table of a large seen file is far bigger than the
/// processor's caches; asked for one at a time each line would wait for memory alone.
const GROUP_LINES: usize = 32;

pub(crate) struct Index {
    hasher: SipHasher13,
    seen: HashTable<Fingerprint>,
}

impl Index {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut key = [0; 16];
        getrandom::fill(&mut key)?;
        Ok(Self {
            hasher: SipHasher13::new_with_key(&key),
            seen: HashTable::new(),
        })
    }

    /// Remembers the lines of a block and gives those to `new`, with their newlines and in
    /// order, that were not there before.
    pub(crate) fn insert(&mut self, block: &[u8], mut new: impl FnMut(&[u8])) {
        let mut lines = lines::split(block);
        loop {
            let mut group = [(&b""[..], (0, 0)); GROUP_LINES];
            let mut length = 0;
            for (slot, line) in group.iter_mut().zip(&mut lines) {
                *slot = (line, self.fingerprint(lines::content(line)));
                length += 1;
            }
            let group = &group[..length];
            if group.is_empty() {
                return;
            }
            // These look-ups do not wait for each other, and leave in the cache what the
            // insertions, which do, will touch.
            for (_, print) in group {
                hint::black_box(self.has(*print));
            }
            for (line, print) in group {
                if self.remember(*print) {
                    new(line);
                }
            }
        }
    }

    /// Whether a line, given without newline, was seen.
    pub(crate) fn contains(&self, content: &[u8]) -> bool {
        self.has(self.fingerprint(content))
    }

    fn fingerprint(&self, content: &[u8]) -> Fingerprint {
        let hash = self.hasher.hash(content);
        (hash.h1, hash.h2)
    }

    fn has(&self, print: Fingerprint) -> bool {
        self.seen.find(print.0, |other| *other == print).is_some()
    }

    /// `false` when it was there before.
    fn remember(&mut self, print: Fingerprint) -> bool {
        match self
            .seen
            .entry(print.0, |other| *other == print, |other| other.0)
        {
            Entry::Occupied(_) => false,
            Entry::Vacant(vacant) => {
                vacant.insert(print);
                true
            }
        }
    }
}
