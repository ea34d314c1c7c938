//! Marks beside the user's own tables: a store in PostgreSQL, for a whole group together.

mod claims;
mod conn;
mod connect;
mod effects;
mod error;
mod expire;
mod known;
mod lease;
mod marks;
mod open;
mod options;
mod outage;
mod read;
mod rows;
mod runtime;
mod schema;
mod shared;
mod sql;
mod statement;
mod transaction;
mod write;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// The client, whose types stand in this store's face.
pub use tokio_postgres;
use tokio_postgres::Config;

use self::connect::{Dial, place};
pub use self::effects::{SqlEffects, SqlError};
pub use self::options::PostgresOptions;
use self::runtime::{Background, wait};
use self::shared::Shared;
use self::transaction::LeaseTransaction;
use self::write::GONE;
use super::transaction::{Transaction, Transactions};
use super::{
    Claims, CommitUnit, Expired, Gaps, Head, Lease, Mark, Owner, PartitionId, Place, Store,
    StoreError, Summary,
};
use crate::key::{Fingerprint, HashKey};
use crate::record::{NextOffset, TopicPartition};

/// A store in a PostgreSQL database, from version 13 on: one for all members of a group, wherever
/// they run.
///
/// Handlers get the open transaction as [`SqlEffects`]: their rows, the record's mark and the
/// partition's position are committed together. Two members that have one key in hand wait for each
/// other, and the second sees what the first has done.
///
/// Calls block until the database answers, or for the [limit](PostgresOptions::outage_limit) of an
/// outage; they may come from any thread, and run on one thread of the store's own. It holds two
/// connections, and one for each partition that is worked on.
///
/// *Durability.* What was committed is on the server's disk, and on its standbys as far as
/// `synchronous_commit` and `synchronous_standby_names` ask for it; `off` is overridden by `on`. A
/// fail-over to a standby that lags undoes the newest commits, business rows and marks alike.
///
/// *Failure.* Nothing poisons it but a commit whose outcome could not be found out; the next start
/// does.
///
/// Tables, rights and what happens when are in `docs/postgres.md`.
pub struct PostgresStore {
    shared: Arc<Shared>,
    claims: Claims,
    _background: Background,
}

impl PostgresStore {
    /// Opens the store with the default [options](PostgresOptions), without TLS.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use idempotent_consumer::store::PostgresStore;
    ///
    /// let store = PostgresStore::connect("host=localhost dbname=shop user=shop".parse()?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`PostgresOptions::connect_with`].
    pub fn connect(config: Config) -> Result<Self, StoreError> {
        Self::options().connect(config)
    }

    /// Options that differ from the defaults.
    #[must_use]
    pub fn options() -> PostgresOptions {
        PostgresOptions::default()
    }

    fn open(
        options: PostgresOptions,
        config: Config,
        dial: Box<dyn Dial>,
    ) -> Result<Self, StoreError> {
        let failed = |place: &str, message: &str| StoreError::Database {
            place: place.to_owned(),
            operation: "opening the store",
            message: message.to_owned(),
        };
        let place = place(&config, &options.schema);
        let background = Background::start();
        let background = background.map_err(|error| failed(&place, &error.to_string()))?;
        let Some(handle) = background.handle() else {
            return Err(failed(&place, GONE));
        };
        let opening = open::open(options, config, dial, handle.clone());
        let shared = wait(&handle, opening).ok_or_else(|| failed(&place, GONE))?;
        Ok(Self {
            shared: shared?,
            claims: Claims::default(),
            _background: background,
        })
    }

    /// Deletes what is old: units from the front of each partition whose newest record is older
    /// than `keep` before the partition's newest one (or before the server's clock, where that is
    /// less), and the marks that they wrote. Nothing above the lowest record that is not done.
    ///
    /// A copy of a record whose key has expired is handled again. Old is what the records say: an
    /// idle partition keeps what it has, and so does one whose records have no time.
    ///
    /// Call it now and then, from one member or several. It works in steps of at most some ten
    /// thousand keys, on a connection of its own; commits do not wait for it.
    ///
    /// # Errors
    /// [`StoreError::Database`]. What was deleted until then stays deleted.
    pub fn expire(&self, keep: Duration) -> Result<Expired, StoreError> {
        self.run(Arc::clone(&self.shared).expire(keep))
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let gone = || Err(self.shared.error("asking the database", GONE));
        wait(&self.shared.handle, work).unwrap_or_else(gone)
    }

    fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }
}

impl Store for PostgresStore {
    fn bind(&self, owner: &Owner) -> Result<HashKey, StoreError> {
        self.run(self.shared().bind(owner.clone()))
    }

    fn bind_cluster(&self, cluster_id: &str) -> Result<(), StoreError> {
        self.run(self.shared().bind_cluster(cluster_id.to_owned()))
    }

    fn lease(&self, partition: &TopicPartition) -> Result<Lease, StoreError> {
        self.run(self.shared().lease(partition.clone()))
    }

    fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.run(self.shared().release(*lease))
    }

    fn lookup(
        &self,
        keys: &[Fingerprint],
        found: &mut Vec<Option<Mark>>,
    ) -> Result<(), StoreError> {
        found.clear();
        *found = self.run(self.shared().lookup(keys.to_vec()))?;
        Ok(())
    }

    /// The entries are those whose marks stand: a key that another unit has done too is in one of
    /// both.
    fn unit_behind(
        &self,
        id: PartitionId,
        place: Place,
    ) -> Result<Option<(Place, CommitUnit)>, StoreError> {
        self.run(self.shared().unit_behind(id, place))
    }

    fn gaps(&self, id: PartitionId) -> Gaps {
        self.shared.known().gaps(id)
    }

    fn retained_from(&self, id: PartitionId) -> NextOffset {
        // Any member may have expired keys since the row was read here.
        let read = self.run(self.shared().read_retained_from(id));
        let kept = self.shared.known().retained_from(id);
        match read {
            Ok(read) => kept.max(read),
            Err(error) => {
                tracing::warn!(%error, "what has expired was not read; what is known of it counts");
                kept
            }
        }
    }

    /// As this store's lease has read it, or has kept it since: nobody else changes it meanwhile.
    fn restore_until(&self, id: PartitionId) -> NextOffset {
        self.shared.known().restore_until(id)
    }

    fn restores(&self, lease: &Lease, until: NextOffset) -> Result<(), StoreError> {
        self.run(self.shared().restores(*lease, until))
    }

    fn result(&self, key: &Fingerprint, mark: &Mark) -> Result<Option<Vec<u8>>, StoreError> {
        if !mark.has_result {
            return Ok(None);
        }
        self.run(self.shared().result(*key, *mark))
    }

    fn commit(&self, units: &[CommitUnit]) -> Result<(), StoreError> {
        self.run(self.shared().commit(units.to_vec()))
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    /// As they were when this store last read or wrote them.
    fn heads(&self) -> Vec<(TopicPartition, Option<Head>)> {
        self.shared.known().heads()
    }

    /// Above a hundred thousand keys their number is the server's estimate.
    fn summary(&self) -> Summary {
        let keys = self.run(self.shared().count());
        let unknown = if keys.is_ok() { "" } else { ", not reached" };
        Summary {
            place: format!("PostgreSQL store in {}{unknown}", self.shared.place),
            keys: keys.unwrap_or_default(),
            partitions: self.shared.known().len() as u64,
            durability: self.shared.durability,
        }
    }
}

impl Transactions<SqlEffects> for PostgresStore {
    fn open(&self, partition: &TopicPartition, lease: &Lease) -> Box<dyn Transaction<SqlEffects>> {
        Box::new(LeaseTransaction::new(self.shared(), partition, lease))
    }
}
