//! Keys in flight: from the moment before a handler runs until its mark is durable.
//!
//! A claim is not a mark. It lives in memory and dies with the process, so that a record whose
//! handler was cut short comes again. It only keeps two partitions from handling copies of one
//! key at the same time: the second waits until the first is durable, or has failed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::key::Fingerprint;
use crate::store::Mark;

/// A power of two, well above the number of threads: two rarely want the same one.
const SHARDS: usize = 64;

/// Who holds a claim: one lease of one partition.
pub(crate) type HolderId = u64;

/// The answer to a wish to handle a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The key is the asker's now.
    Taken,
    /// The asker has handled it already; its mark is not durable yet.
    Own(Mark),
    /// Another partition has it in flight.
    Elsewhere,
}

#[derive(Clone, Copy)]
struct Held {
    holder: HolderId,
    mark: Mark,
}

/// Fingerprints are hashes already.
#[derive(Default)]
struct Through(u64);

impl Hasher for Through {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(low) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*low);
        }
    }

    fn write_usize(&mut self, _length: usize) {}
}

#[derive(Default)]
struct InFlight {
    held: HashMap<Fingerprint, Held, BuildHasherDefault<Through>>,
    /// Threads that wait for one of them. Waking is a system call even where nobody waits, and
    /// releasing happens for every record.
    waiting: usize,
}

#[derive(Default)]
struct Shard {
    in_flight: Mutex<InFlight>,
    released: Condvar,
}

impl Shard {
    fn lock(&self) -> MutexGuard<'_, InFlight> {
        self.in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// All keys in flight of one process.
pub(crate) struct Claims(Vec<Shard>);

impl Default for Claims {
    fn default() -> Self {
        Self((0..SHARDS).map(|_| Shard::default()).collect())
    }
}

impl Claims {
    fn shard(&self, key: &Fingerprint) -> &Shard {
        // The last byte: the first eight choose the place within a shard's table.
        let [.., last] = key.as_bytes();
        &self.0[usize::from(*last) % SHARDS]
    }

    /// Takes the key for `holder`, unless somebody has it.
    pub(crate) fn take(&self, key: Fingerprint, holder: HolderId, mark: Mark) -> Claim {
        match self.shard(&key).lock().held.entry(key) {
            Entry::Vacant(place) => {
                place.insert(Held { holder, mark });
                Claim::Taken
            }
            Entry::Occupied(other) if other.get().holder == holder => Claim::Own(other.get().mark),
            Entry::Occupied(_) => Claim::Elsewhere,
        }
    }

    /// Lets go of a key, if it is `holder`'s.
    pub(crate) fn release(&self, key: &Fingerprint, holder: HolderId) {
        let shard = self.shard(key);
        let mut in_flight = shard.lock();
        let Entry::Occupied(held) = in_flight.held.entry(*key) else {
            return;
        };
        if held.get().holder != holder {
            return;
        }
        held.remove();
        if in_flight.waiting > 0 {
            drop(in_flight);
            shard.released.notify_all();
        }
    }

    /// Waits until nobody holds the key, for at most `limit`; says whether it is free.
    pub(crate) fn wait_free(&self, key: &Fingerprint, limit: Duration) -> bool {
        let shard = self.shard(key);
        let mut in_flight = shard.lock();
        // Counted under the lock that a release holds: it sees this waiter, or this waiter sees
        // the key gone.
        in_flight.waiting += 1;
        let (mut in_flight, _) = shard
            .released
            .wait_timeout_while(in_flight, limit, |now| now.held.contains_key(key))
            .unwrap_or_else(PoisonError::into_inner);
        in_flight.waiting -= 1;
        !in_flight.held.contains_key(key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::claim::first_seen;
    use crate::store::PartitionId;

    const KEY: Fingerprint = Fingerprint([9; 16]);
    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn a_key_in_flight_is_its_holders_until_released() {
        let claims = Claims::default();
        let mark = first_seen(PartitionId(0), 5, 1);
        let late = first_seen(PartitionId(1), 6, 1);
        assert_eq!(claims.take(KEY, 1, mark), Claim::Taken);
        assert_eq!(claims.take(KEY, 1, late), Claim::Own(mark));
        assert_eq!(claims.take(KEY, 2, late), Claim::Elsewhere);
        claims.release(&KEY, 2);
        assert_eq!(
            claims.take(KEY, 2, late),
            Claim::Elsewhere,
            "not its own to release"
        );
        assert!(!claims.wait_free(&KEY, Duration::ZERO));
        claims.release(&KEY, 1);
        assert!(claims.wait_free(&KEY, Duration::ZERO));
        assert_eq!(claims.take(KEY, 2, late), Claim::Taken);
    }

    #[test]
    fn a_waiter_wakes_when_the_holder_lets_go() {
        let claims = Claims::default();
        claims.take(KEY, 1, first_seen(PartitionId(0), 5, 1));
        std::thread::scope(|scope| {
            let begun = Instant::now();
            let waiter = scope.spawn(|| claims.wait_free(&KEY, LIMIT));
            while claims.shard(&KEY).lock().waiting == 0 {
                assert!(begun.elapsed() < LIMIT, "nobody is seen to wait");
                std::thread::yield_now();
            }
            claims.release(&KEY, 1);
            assert!(waiter.join().unwrap());
            assert!(begun.elapsed() < LIMIT, "woken, not run out");
        });
    }
}
