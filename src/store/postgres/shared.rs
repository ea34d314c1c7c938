//! What the store and the transactions of its leases have in common.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::Mutex as AsyncMutex;
use tokio_postgres::Config;

use super::conn::{Conn, Use};
use super::connect::{Dial, place};
use super::error::Failure;
use super::known::Known;
use super::options::{PostgresOptions, Quoted};
use super::outage::Outage;
use super::rows;
use super::sql::Sql;
use crate::store::{Durability, StoreError};

pub(super) struct Shared {
    dial: Box<dyn Dial>,
    config: Config,
    pub(super) options: PostgresOptions,
    pub(super) sql: Sql,
    /// Server, database and schema, as they stand in messages.
    pub(super) place: String,
    pub(super) handle: Handle,
    /// What the server keeps in a crash, by its settings.
    pub(super) durability: Durability,
    /// The level of `synchronous_commit` that every commit is made under.
    pub(super) sync: String,
    /// Look-ups, beside each other.
    reader: AsyncMutex<Option<Arc<Conn>>>,
    /// The store's own transactions, one after the other.
    pub(super) writer: AsyncMutex<Option<Arc<Conn>>>,
    known: Mutex<Known>,
    poison: Mutex<Option<String>>,
}

impl Shared {
    pub(super) fn new(
        dial: Box<dyn Dial>,
        config: Config,
        options: PostgresOptions,
        handle: Handle,
        (durability, sync): (Durability, String),
    ) -> Self {
        Self {
            sql: Sql::new(&Quoted(&options.schema).to_string()),
            place: place(&config, &options.schema),
            dial,
            config,
            options,
            handle,
            durability,
            sync,
            reader: AsyncMutex::default(),
            writer: AsyncMutex::default(),
            known: Mutex::default(),
            poison: Mutex::default(),
        }
    }

    pub(super) fn failure(
        &self,
        operation: &'static str,
        error: &tokio_postgres::Error,
    ) -> Failure {
        Failure::new(&self.place, operation, error)
    }

    /// A failure that no answer of the server's is behind.
    pub(super) fn error(&self, operation: &'static str, message: &str) -> StoreError {
        StoreError::Database {
            place: self.place.clone(),
            operation,
            message: message.to_owned(),
        }
    }

    pub(super) fn outage(&self) -> Outage {
        Outage::new(&self.options)
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn connect(&self, what_for: Use) -> Result<Conn, Failure> {
        Conn::open(
            &*self.dial,
            &self.config,
            &self.options,
            what_for,
            &self.place,
        )
        .await
    }

    /// The connection for look-ups.
    pub(super) async fn reader(&self) -> Result<Arc<Conn>, Failure> {
        let mut reader = self.reader.lock().await;
        self.alive(&mut reader, Use::Reading).await
    }

    /// The connection in a slot, made again where it has ended.
    pub(super) async fn alive(
        &self,
        slot: &mut Option<Arc<Conn>>,
        what_for: Use,
    ) -> Result<Arc<Conn>, Failure> {
        if let Some(conn) = slot.as_ref().filter(|conn| !conn.is_closed()) {
            return Ok(Arc::clone(conn));
        }
        let conn = Arc::new(self.connect(what_for).await?);
        *slot = Some(Arc::clone(&conn));
        Ok(conn)
    }

    /// Reads all partitions anew: another member may have taken some, or new ones.
    pub(super) async fn refresh(&self, conn: &Conn) -> Result<(), Failure> {
        let failed = |error| self.failure("reading the partitions", &error);
        let statement = conn.prepared(&self.sql.partitions).await.map_err(failed)?;
        let rows = conn.query(&statement, &[]).await.map_err(failed)?;
        let mut all = Vec::with_capacity(rows.len());
        for row in &rows {
            let kept = rows::partition(row);
            all.push(kept.map_err(|foreign| foreign.failure(&self.place))?);
        }
        self.known().refresh(all);
        Ok(())
    }

    /// Refuses where it is not known what an earlier commit did.
    pub(super) fn check_poison(&self) -> Result<(), StoreError> {
        let poison = self.poison.lock().unwrap_or_else(PoisonError::into_inner);
        match &*poison {
            None => Ok(()),
            Some(cause) => Err(StoreError::Poisoned {
                place: self.place.clone(),
                cause: cause.clone(),
            }),
        }
    }

    pub(super) fn poison(&self, error: &StoreError) {
        let poison = self.poison.lock();
        let mut poison = poison.unwrap_or_else(PoisonError::into_inner);
        poison.get_or_insert_with(|| error.to_string());
    }
}
