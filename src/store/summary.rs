//! A store in words.

use std::fmt;

use super::Durability;

/// A store in one line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// What and where: `sled store at /var/lib/seen`.
    pub place: String,
    /// How many keys it knows. A store in a directory counts one several times that was done again
    /// after it had been forgotten or given up, or was read once more, until its marks are merged.
    pub keys: u64,
    /// How many partitions it has heads for.
    pub partitions: u64,
    /// What a crash may undo.
    pub durability: Durability,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            keys,
            partitions,
            durability,
        } = self;
        write!(
            f,
            "{place}: {keys} keys, {partitions} partitions, durability {durability:?}"
        )
    }
}
