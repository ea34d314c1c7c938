//! The first connection: the tables are made or checked, and what the server promises is read.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_postgres::Config;

use super::conn::{Conn, Use};
use super::connect::{Dial, place, with_limits};
use super::error::Failure;
use super::options::PostgresOptions;
use super::outage::Outage;
use super::schema;
use super::shared::Shared;
use crate::store::{Durability, StoreError};

const OPENING: &str = "opening the store";

/// What `synchronous_commit` may be: the commit is on the server's disk, at the least.
const SYNC_LEVELS: [&str; 4] = ["on", "local", "remote_write", "remote_apply"];

pub(super) async fn open(
    options: PostgresOptions,
    config: Config,
    dial: Box<dyn Dial>,
    handle: Handle,
) -> Result<Arc<Shared>, StoreError> {
    let config = with_limits(config);
    let place = place(&config, &options.schema);
    if let Some(reason) = options.bad_schema() {
        return Err(StoreError::Database {
            place,
            operation: OPENING,
            message: reason.to_owned(),
        });
    }
    let mut outage = Outage::new(&options);
    let (conn, promise) = loop {
        match try_open(&options, &config, &*dial, &place).await {
            Ok(opened) => break opened,
            Err(failure) => outage.pause(failure).await?,
        }
    };
    let shared = Arc::new(Shared::new(dial, config, options, handle, promise));
    let conn = Arc::new(conn);
    *shared.writer.lock().await = Some(Arc::clone(&conn));
    shared
        .refresh(&conn)
        .await
        .map_err(|failure| failure.error)?;
    Ok(shared)
}

async fn try_open(
    options: &PostgresOptions,
    config: &Config,
    dial: &dyn Dial,
    place: &str,
) -> Result<(Conn, (Durability, String)), Failure> {
    let failed = |error| Failure::new(place, OPENING, &error);
    let conn = Conn::open(dial, config, options, Use::Writing, place).await?;
    schema::prepare(&conn, options, place).await?;
    let settings = "SELECT current_setting('fsync')::boolean, \
         (SELECT reset_val FROM pg_catalog.pg_settings WHERE name = 'synchronous_commit')";
    let row = conn.query_one(settings, &[]).await;
    let row = row.map_err(failed)?;
    let fsync: bool = row.try_get(0).map_err(failed)?;
    let level: &str = row.try_get(1).map_err(failed)?;
    let durability = if fsync {
        Durability::Power
    } else {
        tracing::warn!(
            place,
            "the server runs with fsync = off: a crash of its machine may undo what was committed, \
             or damage all of it"
        );
        Durability::Process
    };
    let level = SYNC_LEVELS.into_iter().find(|known| *known == level);
    if level.is_none() {
        tracing::info!(
            place,
            "synchronous_commit is off here; the store commits with it on"
        );
    }
    Ok((conn, (durability, level.unwrap_or("on").to_owned())))
}
