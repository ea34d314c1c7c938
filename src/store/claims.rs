//! Keys in flight: from the moment before a handler runs until its mark is durable.
//!
//! A claim is not a mark. It lives in memory and dies with the process, so that a record whose
//! handler was cut short comes again. It only keeps two partitions from handling copies of one
//! key at the same time: the second waits until the first is durable, or has failed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Mark;
use crate::key::Fingerprint;

/// A power of two, well above the number of threads: two rarely want the same one.
const SHARDS: usize = 64;

/// Who holds a claim: one lease of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HolderId {
    pub(crate) engine: u64,
    pub(crate) lease: u64,
}

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
    /// The record took effect, and its lease was over before the mark: only the same record may
    /// be handled, in doubt, by the partition's next lease.
    orphaned: bool,
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

/// The keys in flight on one store.
///
/// A store keeps one from its making to its end, so that all who work on it know of each other.
/// There is nothing in it to look at or to change: it is for engines.
pub struct Claims {
    shards: Vec<Shard>,
    /// Counts commits; a look-up older than the newest one is repeated before a key is handled.
    commits: AtomicU64,
    engines: AtomicU64,
}

impl Default for Claims {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            commits: AtomicU64::new(0),
            engines: AtomicU64::new(0),
        }
    }
}

impl std::fmt::Debug for Claims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claims").finish_non_exhaustive()
    }
}

/// The last byte: the first eight choose the place within a shard's table.
fn shard_of(key: &Fingerprint) -> usize {
    let [.., last] = key.as_bytes();
    usize::from(*last) % SHARDS
}

impl Claims {
    fn shard(&self, key: &Fingerprint) -> &Shard {
        &self.shards[shard_of(key)]
    }

    /// A number for one more engine on the store.
    pub(crate) fn enter(&self) -> u64 {
        self.engines.fetch_add(1, Ordering::Relaxed)
    }

    /// Lets go of whatever an engine still holds at its end: as after a crash, those keys come
    /// again.
    pub(crate) fn leave(&self, engine: u64) {
        for shard in &self.shards {
            shard
                .lock()
                .held
                .retain(|_, held| held.holder.engine != engine);
            shard.released.notify_all();
        }
    }

    /// How many commits there were, by whomever.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Acquire)
    }

    pub(crate) fn committed(&self) {
        self.commits.fetch_add(1, Ordering::Release);
    }

    /// Takes the key for `holder`, unless somebody has it.
    pub(crate) fn take(&self, key: Fingerprint, holder: HolderId, mark: Mark) -> Claim {
        match self.shard(&key).lock().held.entry(key) {
            Entry::Vacant(place) => {
                place.insert(Held {
                    holder,
                    mark,
                    orphaned: false,
                });
                Claim::Taken
            }
            Entry::Occupied(mut other) => {
                let held = other.get_mut();
                if held.orphaned && held.mark == mark {
                    (held.holder, held.orphaned) = (holder, false);
                    Claim::Taken
                } else if held.holder == holder {
                    Claim::Own(held.mark)
                } else {
                    Claim::Elsewhere
                }
            }
        }
    }

    /// The record took effect, but its lease was over: the key stays claimed, so that no copy of
    /// it is handled elsewhere as if nothing had happened.
    pub(crate) fn orphan(&self, key: &Fingerprint, holder: HolderId) {
        if let Some(held) = self.shard(key).lock().held.get_mut(key) {
            held.orphaned |= held.holder == holder;
        }
    }

    /// The record went to the dead letters: once that is durable, others of the key are tried.
    pub(crate) fn dead_letter(&self, key: &Fingerprint, holder: HolderId) {
        if let Some(held) = self.shard(key).lock().held.get_mut(key) {
            held.mark.dead_lettered |= held.holder == holder;
        }
    }

    /// Lets go of a key, if it is `holder`'s, whichever of its records it was taken for.
    pub(crate) fn release(&self, key: &Fingerprint, holder: HolderId) {
        self.release_if(key, holder, |_| true);
    }

    /// Lets go of a key, if `holder` took it for the record at `offset` and not for a copy of it.
    pub(crate) fn release_at(&self, key: &Fingerprint, holder: HolderId, offset: i64) {
        self.release_if(key, holder, |mark| mark.offset == offset);
    }

    /// As [`release`](Claims::release), for many: one lock for all of a shard.
    pub(crate) fn release_all<'a>(
        &self,
        keys: impl Iterator<Item = &'a Fingerprint>,
        holder: HolderId,
    ) {
        let mut sharded: Vec<(usize, &Fingerprint)> =
            keys.map(|key| (shard_of(key), key)).collect();
        sharded.sort_unstable_by_key(|(shard, _)| *shard);
        for of_one in sharded.chunk_by(|(one, _), (other, _)| one == other) {
            let Some(shard) = of_one
                .first()
                .and_then(|(shard, _)| self.shards.get(*shard))
            else {
                continue;
            };
            let mut in_flight = shard.lock();
            for (_, key) in of_one {
                if let Entry::Occupied(held) = in_flight.held.entry(**key) {
                    if held.get().holder == holder {
                        held.remove();
                    }
                }
            }
            if in_flight.waiting > 0 {
                drop(in_flight);
                shard.released.notify_all();
            }
        }
    }

    fn release_if(&self, key: &Fingerprint, holder: HolderId, of: impl FnOnce(&Mark) -> bool) {
        let shard = self.shard(key);
        let mut in_flight = shard.lock();
        let Entry::Occupied(held) = in_flight.held.entry(*key) else {
            return;
        };
        if held.get().holder != holder || !of(&held.get().mark) {
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
    use crate::store::PartitionId;

    const KEY: Fingerprint = Fingerprint([9; 16]);
    const ONE: HolderId = HolderId {
        engine: 0,
        lease: 1,
    };
    const TWO: HolderId = HolderId {
        engine: 1,
        lease: 2,
    };
    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn a_key_in_flight_is_its_holders_until_released() {
        let claims = Claims::default();
        let mark = Mark::first_seen(PartitionId(0), 5, 1);
        let late = Mark::first_seen(PartitionId(1), 6, 1);
        assert_eq!(claims.take(KEY, ONE, mark), Claim::Taken);
        assert_eq!(claims.take(KEY, ONE, late), Claim::Own(mark));
        assert_eq!(claims.take(KEY, TWO, late), Claim::Elsewhere);
        claims.release(&KEY, TWO);
        assert_eq!(
            claims.take(KEY, TWO, late),
            Claim::Elsewhere,
            "not its own to release"
        );
        assert!(!claims.wait_free(&KEY, Duration::ZERO));
        claims.release(&KEY, ONE);
        assert!(claims.wait_free(&KEY, Duration::ZERO));
        assert_eq!(claims.take(KEY, TWO, late), Claim::Taken);
    }

    #[test]
    fn what_took_effect_without_a_mark_is_only_for_the_same_record_again() {
        let claims = Claims::default();
        let mark = Mark::first_seen(PartitionId(0), 5, 1);
        let copy = Mark::first_seen(PartitionId(1), 6, 1);
        claims.take(KEY, ONE, mark);
        claims.orphan(&KEY, TWO);
        assert_eq!(claims.take(KEY, TWO, mark), Claim::Elsewhere, "not its own");
        claims.orphan(&KEY, ONE);
        assert_eq!(claims.take(KEY, TWO, copy), Claim::Elsewhere);
        assert_eq!(claims.take(KEY, TWO, mark), Claim::Taken);
        assert_eq!(claims.take(KEY, TWO, copy), Claim::Own(mark));
    }

    #[test]
    fn an_engine_that_ends_lets_go_of_its_keys_alone() {
        let claims = Claims::default();
        let mark = Mark::first_seen(PartitionId(0), 5, 1);
        claims.take(KEY, ONE, mark);
        claims.leave(TWO.engine);
        assert_eq!(claims.take(KEY, TWO, mark), Claim::Elsewhere);
        claims.leave(ONE.engine);
        assert_eq!(claims.take(KEY, TWO, mark), Claim::Taken);
    }

    #[test]
    fn a_waiter_wakes_when_the_holder_lets_go() {
        let claims = Claims::default();
        claims.take(KEY, ONE, Mark::first_seen(PartitionId(0), 5, 1));
        std::thread::scope(|scope| {
            let begun = Instant::now();
            let waiter = scope.spawn(|| claims.wait_free(&KEY, LIMIT));
            while claims.shard(&KEY).lock().waiting == 0 {
                assert!(begun.elapsed() < LIMIT, "nobody is seen to wait");
                std::thread::yield_now();
            }
            claims.release(&KEY, ONE);
            assert!(waiter.join().unwrap());
            assert!(begun.elapsed() < LIMIT, "woken, not run out");
        });
    }
}
