//! The store's tables: made, raised to the present format, or refused.

use tokio_postgres::error::SqlState;

use super::connect::Conn;
use super::error::{Failure, describe};
use super::options::{PostgresOptions, Quoted};
use crate::store::StoreError;

const OPENING: &str = "opening the store";
/// What the stamp's row says of who made it. A table of that name may be anybody's.
const MADE_BY: &str = "idempotent-consumer";
/// `pg_current_xact_id` came with it.
const SERVER_VERSION_MIN: i32 = 130_000;

/// Each raises the format by one, from 0. The text takes the quoted schema for `{s}`.
const MIGRATIONS: [&str; 1] = ["\
    CREATE TABLE {s}.stamp (
        singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
        made_by text NOT NULL,
        format integer NOT NULL,
        hash_key bytea NOT NULL CHECK (octet_length(hash_key) = 16),
        owner_group text, recipe text, scope text, cluster text);
    CREATE TABLE {s}.partitions (
        id integer PRIMARY KEY,
        topic text NOT NULL,
        partition integer NOT NULL,
        epoch bigint NOT NULL DEFAULT 0,
        leased boolean NOT NULL DEFAULT false,
        next bigint,
        step bigint NOT NULL DEFAULT 0,
        gaps bigint[] NOT NULL DEFAULT '{}',
        anchor_offset bigint, anchor_timestamp_ms bigint, anchor_digest bigint,
        max_timestamp_ms bigint NOT NULL DEFAULT -1,
        retained_from bigint NOT NULL DEFAULT 0,
        restore_until bigint NOT NULL DEFAULT 0,
        UNIQUE (topic, partition)) WITH (fillfactor = 50);
    CREATE TABLE {s}.units (
        partition integer NOT NULL,
        next bigint NOT NULL,
        step bigint NOT NULL,
        previous bigint NOT NULL,
        epoch bigint NOT NULL,
        token bigint NOT NULL,
        max_timestamp_ms bigint NOT NULL,
        anchor_offset bigint, anchor_timestamp_ms bigint, anchor_digest bigint,
        gaps bigint[] NOT NULL,
        keys bytea NOT NULL,
        committed_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (partition, next, step));
    CREATE TABLE {s}.marks (
        fingerprint bytea PRIMARY KEY CHECK (octet_length(fingerprint) = 16),
        partition integer NOT NULL,
        token bigint NOT NULL,
        record_offset bigint NOT NULL,
        value_digest bigint NOT NULL,
        flags smallint NOT NULL,
        result bytea);"];

/// The format that this version writes, and the highest that it reads.
const FORMAT: i32 = {
    assert!(MIGRATIONS.len() == 1, "say the new format here");
    1
};

/// What the schema is.
enum Found {
    /// There is none.
    Nothing,
    /// There is one, without tables: an administrator's, made for this.
    Empty,
    /// Ours, in some format.
    Ours(i32),
}

/// Makes the tables where there are none, or checks those that are there.
pub(super) async fn prepare(
    conn: &Conn,
    options: &PostgresOptions,
    place: &str,
) -> Result<(), Failure> {
    let refused = |message: String| refuse(place, message);
    check_server(conn, place).await?;
    let found = look(conn, options, place).await?;
    if matches!(found, Found::Ours(FORMAT)) {
        return Ok(());
    }
    if !options.create && !matches!(found, Found::Ours(_)) {
        return Err(refused(
            "there is no store, and none is to be made: is the schema's name right?".to_owned(),
        ));
    }
    let failed = |error| Failure::new(place, "making the store's tables", &error);
    let client = conn.client();
    client.batch_execute("BEGIN").await.map_err(failed)?;
    let made = migrate(conn, options, place).await;
    let end = if made.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = client.batch_execute(end).await.map_err(failed);
    made.and(ended)
}

async fn check_server(conn: &Conn, place: &str) -> Result<(), Failure> {
    let asked = "SELECT current_setting('server_version_num')::integer, pg_is_in_recovery(), \
         current_setting('server_version')";
    let answer = conn.client().query_one(asked, &[]).await;
    let row = answer.map_err(|error| Failure::new(place, OPENING, &error))?;
    let failed = |error| Failure::new(place, OPENING, &error);
    let number: i32 = row.try_get(0).map_err(failed)?;
    let standby: bool = row.try_get(1).map_err(failed)?;
    let version: &str = row.try_get(2).map_err(failed)?;
    if number < SERVER_VERSION_MIN {
        let message = format!("the server has version {version}, 13 or newer is needed");
        return Err(refuse(place, message));
    }
    if standby {
        let message = "the server is a standby, which cannot be written: name the primary, or add \
             target_session_attrs=read-write";
        // It may be about to become the primary.
        return Err(Failure {
            transient: true,
            ..refuse(place, message.to_owned())
        });
    }
    Ok(())
}

async fn look(conn: &Conn, options: &PostgresOptions, place: &str) -> Result<Found, Failure> {
    let failed = |error| Failure::new(place, OPENING, &error);
    let tables = "SELECT c.relname::text FROM pg_catalog.pg_namespace n \
         LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relkind <> 'i' \
         WHERE n.nspname = $1";
    let rows = conn.client().query(tables, &[&options.schema]).await;
    let rows = rows.map_err(failed)?;
    let names: Result<Vec<Option<String>>, _> = rows.iter().map(|row| row.try_get(0)).collect();
    let names = names.map_err(failed)?;
    if names.is_empty() {
        return Ok(Found::Nothing);
    }
    if names == [None] {
        return Ok(Found::Empty);
    }
    let foreign = || {
        refuse(
            place,
            "the schema has tables, but not this store's: name a schema of the store's own"
                .to_owned(),
        )
    };
    if !names.iter().flatten().any(|name| name == "stamp") {
        return Err(foreign());
    }
    let stamp = format!(
        "SELECT made_by, format FROM {}.stamp",
        Quoted(&options.schema)
    );
    let row = match conn.client().query_opt(&stamp, &[]).await {
        Ok(Some(row)) => row,
        Ok(None) => return Err(foreign()),
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            let hint = "docs/postgres.md lists what a user of the store must be granted";
            return Err(refuse(place, format!("{}. {hint}", describe(&error))));
        }
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_COLUMN) => return Err(foreign()),
        Err(error) => return Err(failed(error)),
    };
    let (Ok(MADE_BY), Ok(format)) = (row.try_get(0), row.try_get::<_, i32>(1)) else {
        return Err(foreign());
    };
    if format > FORMAT {
        return Err(refuse(
            place,
            format!(
                "the store has format {format}, and this version knows formats up to {FORMAT}: \
                 use the version that made it, or a newer one"
            ),
        ));
    }
    Ok(Found::Ours(format))
}

/// In a transaction: what another member has made meanwhile is not made again.
async fn migrate(conn: &Conn, options: &PostgresOptions, place: &str) -> Result<(), Failure> {
    let failed = |error| Failure::new(place, "making the store's tables", &error);
    let client = conn.client();
    lock(conn, options).await.map_err(failed)?;
    let schema = Quoted(&options.schema).to_string();
    let from = match look(conn, options, place).await? {
        Found::Ours(format) => format,
        Found::Empty => 0,
        Found::Nothing => {
            let create = format!("CREATE SCHEMA {schema}");
            client.batch_execute(&create).await.map_err(failed)?;
            0
        }
    };
    let done = usize::try_from(from).unwrap_or_default();
    for migration in MIGRATIONS.iter().skip(done) {
        let text = migration.replace("{s}", &schema);
        client.batch_execute(&text).await.map_err(failed)?;
    }
    if from > 0 {
        let raise = format!("UPDATE {schema}.stamp SET format = $1");
        let raised = client.execute(&raise, &[&FORMAT]).await;
        return raised.map(drop).map_err(failed);
    }
    let mut hash_key = [0; 16];
    getrandom::fill(&mut hash_key)
        .map_err(|error| refuse(place, format!("no random numbers: {error}")))?;
    let stamp =
        format!("INSERT INTO {schema}.stamp (made_by, format, hash_key) VALUES ($1, $2, $3)");
    let hash_key: &[u8] = &hash_key;
    let written = client
        .execute(&stamp, &[&MADE_BY, &FORMAT, &hash_key])
        .await;
    written.map(drop).map_err(failed)
}

/// Held to the end of the transaction: one at a time makes tables, or gives numbers to partitions.
pub(super) async fn lock(
    conn: &Conn,
    options: &PostgresOptions,
) -> Result<(), tokio_postgres::Error> {
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
    let name = format!("{MADE_BY} {}", options.schema);
    conn.client().execute(lock, &[&name]).await.map(drop)
}

fn refuse(place: &str, message: String) -> Failure {
    Failure::lasting(StoreError::Database {
        place: place.to_owned(),
        operation: OPENING,
        message,
    })
}
