//! Where it is kept what has been done: the [`Store`] trait and its implementations.

mod arc;
mod claims;
mod commit;
#[cfg(any(feature = "sled", feature = "redb"))]
mod directory;
mod error;
#[cfg(any(feature = "sled", feature = "redb"))]
mod forget;
#[cfg_attr(
    not(any(feature = "sled", feature = "redb")),
    expect(dead_code, reason = "in memory only keys are encoded")
)]
mod format;
mod front;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gaps;
mod index;
mod memory;
mod owner;
mod partitions;
#[cfg(feature = "postgres")]
mod postgres;
mod recorded;
#[cfg(feature = "redb")]
mod redb;
mod retaining;
#[cfg(feature = "sled")]
mod sled;
#[cfg(any(feature = "sled", feature = "redb"))]
mod standing;
mod summary;
mod tail;
#[cfg(feature = "postgres")]
pub(crate) mod transaction;

pub use claims::Claims;
pub(crate) use claims::{Claim, HolderId};
pub use commit::{Anchor, CommitUnit, Entry, Place};
pub use error::StoreError;
pub use gaps::{Gap, Gaps};
pub use memory::MemoryStore;
pub use owner::Owner;
use owner::{owner_matches, same};
pub use retaining::{Expired, Expiry, Retained, Retaining, Usage};
pub use summary::Summary;

#[cfg(any(feature = "sled", feature = "redb"))]
pub use self::directory::{Copied, DirectoryStore, Engine, Inspection, PartitionState};
#[cfg(any(feature = "sled", feature = "redb"))]
pub use self::forget::{Forget, Forgotten, Reopened};
#[cfg(feature = "postgres")]
pub use self::postgres::{PostgresOptions, PostgresStore, SqlEffects, SqlError, tokio_postgres};
#[cfg(feature = "redb")]
pub use self::redb::{RedbOptions, RedbStore};
#[cfg(feature = "sled")]
pub use self::sled::{SledOptions, SledStore};

use crate::key::{Fingerprint, HashKey};
use crate::record::{NextOffset, TopicPartition};

/// What a crash may undo of a commit that was acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Nothing: the bytes were handed to the device and the device said that it has them. As good
    /// as the device's word; some acknowledge from a volatile cache. The default.
    #[default]
    Power,
    /// A death of the process undoes nothing; a power cut or a crash of the operating system may
    /// undo what came in the last seconds, from the newest back. The store notices that it is
    /// behind the group's committed offset.
    Process,
    /// A death of the process undoes what was acknowledged in about the last half second. For
    /// tests and for stores that are thrown away.
    None,
}

/// A partition's number inside its store: dense, from 0, never used again for another partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionId(pub u32);

/// Where the work on a partition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Behind the highest record that is done: all below is, but for the partition's
    /// [gaps](Store::gaps).
    pub next: NextOffset,
    /// How the record below [`next`](Head::next) is known again.
    pub anchor: Option<Anchor>,
    /// The highest record timestamp committed so far, in milliseconds since 1970.
    pub max_timestamp_ms: i64,
}

/// One period in which this process owns a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The partition.
    pub id: PartitionId,
    /// Counts the leases of this partition; commits under an older one are refused.
    pub epoch: u32,
    /// Where the work stands, `None` where this store has never committed for the partition.
    pub head: Option<Head>,
    /// Whether effects may exist whose marks do not: the last lease did not end in order.
    pub in_doubt: bool,
}

/// What is known of a key that has been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and is kept as a bit"
)]
pub struct Mark {
    /// The partition of the record that took effect.
    pub id: PartitionId,
    /// Its offset.
    pub offset: i64,
    /// The digest of its value, of which only the low 32 bits count: a store may keep no more.
    pub value_digest: u64,
    /// Whether it recorded a result.
    pub has_result: bool,
    /// Whether it went to the dead letters: nothing took effect, and another record of the key is
    /// tried like a new one.
    pub dead_lettered: bool,
    /// Whether it was forgotten since: every record of the key is new.
    pub forgotten: bool,
    /// Whether the record was only read for its key: another member did it, or gave it up as a dead
    /// letter. So it does not answer for a letter that comes back from its very place.
    pub restored: bool,
}

impl Mark {
    /// Whether its record had the value of a digest. One in 2^32 others is taken for it: that
    /// decides about the reason that is told, never about what is handled.
    pub(crate) fn has_value(&self, value_digest: u64) -> bool {
        (self.value_digest ^ value_digest) & u64::from(u32::MAX) == 0
    }

    /// The mark that a record's key will have, as far as a copy in flight needs it.
    pub(crate) fn first_seen(id: PartitionId, offset: i64, value_digest: u64) -> Self {
        Self {
            id,
            offset,
            value_digest,
            has_result: false,
            dead_lettered: false,
            forgotten: false,
            restored: false,
        }
    }
}

/// A persistent set of keys that have been done, written together with results and positions.
///
/// # The contract
///
/// *Order of calls.* [`bind`](Store::bind) once, before anything else. Then, per partition, a
/// [`lease`](Store::lease), any number of [`commit`](Store::commit)s under its epoch, and a
/// [`release`](Store::release). Look-ups at any time after `bind`, from any thread.
///
/// *Atomicity.* A [`CommitUnit`] is there whole or not at all: keys, results and position never
/// part. Several units of one call may be there in part after a crash, since they belong to
/// different partitions.
///
/// *Durability.* When `commit` returns `Ok`, every unit has the store's [`Durability`]. Nothing
/// may be acknowledged to the outside before that: no offset, no answer to a copy.
///
/// *Visibility.* A key is found by look-ups from the moment that `commit` returns, not before: a
/// mark that a crash could still undo suppresses nothing.
///
/// *Failure.* A store that failed to write is poisoned: every later `commit` is refused with
/// [`StoreError::Poisoned`]. What is on disk after a failed write is unknown, and a later success
/// would build on it. Open it again to find out.
///
/// *Doubt.* An implementation that finds its data damaged, cut short or foreign refuses with an
/// error that names the place and the way out. It never goes on from less than it acknowledged.
///
/// An implementation must not assume that units come in the order of their partitions, that a
/// partition's offsets are without gaps, or that a key occurs once: after a restore it may be
/// committed again, and then the first mark stands (once the store is opened again, either).
pub trait Store: Send + Sync + 'static {
    /// Ties the store to its owner and returns the key to hash with.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] where the store was filled for another group, recipe or scope.
    fn bind(&self, owner: &Owner) -> Result<HashKey, StoreError>;

    /// Ties the store to a Kafka cluster by its id, whose offsets its heads are.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] where it was filled from another cluster.
    fn bind_cluster(&self, cluster_id: &str) -> Result<(), StoreError>;

    /// Takes a partition. From here on, until [`release`](Store::release), a crash leaves the
    /// next lease [in doubt](Lease::in_doubt).
    ///
    /// # Errors
    /// Where the new epoch cannot be written.
    fn lease(&self, partition: &TopicPartition) -> Result<Lease, StoreError>;

    /// Gives a partition up in order: every effect under this lease has its mark.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] where the lease is not the newest, or where it cannot be written.
    fn release(&self, lease: &Lease) -> Result<(), StoreError>;

    /// Looks keys up; `found` is cleared and gets one answer for each, in order.
    ///
    /// # Errors
    /// Where the store cannot be read.
    fn lookup(&self, keys: &[Fingerprint], found: &mut Vec<Option<Mark>>)
    -> Result<(), StoreError>;

    /// The first unit of a partition behind a place, with its own; `None` behind the last.
    ///
    /// From place to place this reads the log back, from `Place::default()` on everything but a
    /// first unit that ends at offset 0, which there is none of. What was done at an offset is in
    /// a unit behind `NextOffset::new(offset)`, often the first.
    ///
    /// # Errors
    /// Where the store cannot be read.
    fn unit_behind(
        &self,
        id: PartitionId,
        place: Place,
    ) -> Result<Option<(Place, CommitUnit)>, StoreError>;

    /// What below a partition's head is not done.
    fn gaps(&self, id: PartitionId) -> Gaps;

    /// Below, keys may have been dropped on purpose: an unknown key of a record there says nothing.
    fn retained_from(&self, id: PartitionId) -> NextOffset {
        let _ = id;
        NextOffset::ZERO
    }

    /// What forgets, in a store that can. By default `None`: every key is kept for ever.
    fn retaining(&self) -> Option<&dyn Retaining> {
        None
    }

    /// Up to where a partition that this store had never worked on is only read for its keys: what
    /// lies below was done by others. Asked by consumers whose handlers write in the store's own
    /// transactions.
    fn restore_until(&self, id: PartitionId) -> NextOffset {
        let _ = id;
        NextOffset::ZERO
    }

    /// Keeps [`restore_until`](Store::restore_until), before the first key is read: an interrupted
    /// restore is taken up again then, and what others have done is not handled. By default nothing
    /// is kept.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] where the lease is not the newest, or where it cannot be written.
    fn restores(&self, lease: &Lease, until: NextOffset) -> Result<(), StoreError> {
        let _ = (lease, until);
        Ok(())
    }

    /// The result recorded with a mark, `None` where there is none.
    ///
    /// # Errors
    /// Where the store cannot be read.
    fn result(&self, key: &Fingerprint, mark: &Mark) -> Result<Option<Vec<u8>>, StoreError> {
        recorded::find(self, key, mark)
    }

    /// Keeps a unit from a death of this process until a [`commit`](Store::commit) has it, and says
    /// whether it does. By default nothing is kept.
    ///
    /// It is written by whoever did the work, at the price of one write into the page cache. A store
    /// that is opened after a death of the process has committed what was kept, as if it had been
    /// before; after a power cut it may have. What is kept is neither found by look-ups nor part of
    /// a head, and the same work is committed later, in this unit or with more.
    ///
    /// A partition's units are kept in their order: the first begins at the head that the store has
    /// acknowledged or at the end of the unit in the commit under way, each other where the one
    /// before ends. Each moves the head, says what is not done below it, and has the marks of all
    /// that is done since the one before; and the partition has a head.
    fn journal(&self, unit: &CommitUnit) -> bool {
        let _ = unit;
        false
    }

    /// Whether a partition [in doubt](Lease::in_doubt) may lack more than a death of the process may
    /// repeat: what was kept for it, after a power cut; or a transaction, which may be larger. By
    /// default nothing is kept.
    fn may_lack_kept(&self, id: PartitionId) -> bool {
        let _ = id;
        false
    }

    /// Writes units, at most one a partition, each atomically.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] for a unit under an old epoch
    /// ([`FencedUnmarked`](StoreError::FencedUnmarked) where what it sends was sent), [`StoreError::NotContiguous`] for one
    /// that does not follow the partition's head, [`StoreError::Misused`] for two units of one
    /// partition or one that is longer than the store takes (all before anything is written);
    /// [`StoreError::Poisoned`] after an earlier failure; any other error poisons the store.
    fn commit(&self, units: &[CommitUnit]) -> Result<(), StoreError>;

    /// The keys in flight on this store: the same at every call, for every handle to the same
    /// data. A store keeps a [`Claims::default`]; one that wraps another hands out that one's.
    fn claims(&self) -> &Claims;

    /// The partitions that the store knows, with their heads.
    fn heads(&self) -> Vec<(TopicPartition, Option<Head>)>;

    /// What to log of it.
    fn summary(&self) -> Summary;

    /// What tells this store from all others, the same whenever it is opened again. By default
    /// `None`, for a store that keeps nothing of the kind.
    fn id(&self) -> Option<String> {
        None
    }

    /// Whether what handlers do takes effect in the [`commit`](Store::commit), all of it, and nothing
    /// before: then a record whose commit is refused may be handled again by anybody. By default
    /// not.
    fn effects_in_commit(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod contract;
