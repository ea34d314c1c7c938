//! The open transaction, as a handler sees it.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::try_join;
use serde::Serialize;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use super::connect::Conn;
use super::error::{describe, is_transient};
use super::statement::refused_word;
use crate::handler::{Effects, HandlerResult};

const SAVE: &str = "SAVEPOINT idempotent_consumer_record";
/// The one before was kept: let go of it, or a batch would nest as deep as it is long.
const SAVE_AGAIN: &str =
    "RELEASE SAVEPOINT idempotent_consumer_record; SAVEPOINT idempotent_consumer_record";
const RELEASE: &str = "RELEASE SAVEPOINT idempotent_consumer_record";
const UNDO: &str = "ROLLBACK TO SAVEPOINT idempotent_consumer_record; \
     RELEASE SAVEPOINT idempotent_consumer_record";

/// The open SQL transaction in which the record's mark is written too: what a handler writes here
/// is there with the mark, or not at all.
///
/// The statements of one record are undone together when its handler fails, and those of the other
/// records of the batch stay. Nothing is visible to others before the batch is committed, a moment
/// after its last handler has returned.
///
/// Statements are prepared at their first use and kept by their text (256 of them): write values as
/// parameters, `$1` and so on. One statement a call. What would begin, end or divide the
/// transaction (`COMMIT`, `ROLLBACK`, `SAVEPOINT` and their like) is refused, and so are `COPY` and
/// what would change the connection, which serves the next record as well: settings are made with
/// `SET LOCAL`.
///
/// A statement that failed spoils what follows it: the handler must return an error then, and
/// whether it is tried again says the [`RetryPolicy`](crate::RetryPolicy). Where a conflict is
/// expected, `ON CONFLICT DO NOTHING` answers with a count instead of an error.
///
/// What passes by itself (a deadlock, a serialization failure, a time limit, a full disk, a server
/// that shuts down) is no failed attempt, whatever the handler returns: the whole transaction is
/// done again, for as long as the consumer's limit for that.
pub struct SqlEffects {
    conn: Option<Arc<Conn>>,
    recorded: Effects,
    stage: Mutex<Stage>,
}

/// How far the record's part of the transaction has come.
#[derive(Default)]
struct Stage {
    /// The savepoint is there, of this record or of one that was kept.
    standing: bool,
    /// It is this record's.
    begun: bool,
    failed: bool,
    /// Why a statement failed that nothing was wrong with: the whole transaction is done again.
    passing: Option<String>,
    /// Statements without an answer yet. Of one that is not waited for any more it stays unknown.
    running: usize,
}

/// Why a statement did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// It would have begun, ended or divided the transaction, or changed the connection beyond it.
    #[error(
        "{word} is not for handlers: the consumer commits the transaction together with the mark, \
         and its connection serves the next record too. To undo what was written for this record, \
         return an error; what is set, is set with SET LOCAL"
    )]
    Refused {
        /// What it began with.
        word: &'static str,
    },
    /// The database refused it, or was not reached.
    #[error("{}", describe(.0))]
    Database(#[source] Error),
    /// There is no transaction: the effects were kept beyond their handler.
    #[error("no transaction is open for this record")]
    NoTransaction,
}

impl SqlError {
    /// The SQLSTATE, where the database gave one:
    /// [`SqlState::UNIQUE_VIOLATION`](tokio_postgres::error::SqlState::UNIQUE_VIOLATION) and so on.
    #[must_use]
    pub fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Database(error) => error.code(),
            Self::Refused { .. } | Self::NoTransaction => None,
        }
    }
}

impl SqlEffects {
    /// Sends a statement; gives how many rows it changed.
    ///
    /// # Errors
    /// [`SqlError`]: the handler returns it on.
    pub async fn execute(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, SqlError> {
        let send = async |client: &Client, prepared: &Statement| {
            client.execute(prepared, parameters).await
        };
        self.send(statement, send).await
    }

    /// Sends a statement; gives its rows.
    ///
    /// # Errors
    /// [`SqlError`]: the handler returns it on.
    pub async fn query(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, SqlError> {
        let send =
            async |client: &Client, prepared: &Statement| client.query(prepared, parameters).await;
        self.send(statement, send).await
    }

    /// Sends a statement; gives its one row.
    ///
    /// # Errors
    /// [`SqlError`], for any other number of rows too.
    pub async fn query_one(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, SqlError> {
        let send = async |client: &Client, prepared: &Statement| {
            client.query_one(prepared, parameters).await
        };
        self.send(statement, send).await
    }

    /// Sends a statement; gives its one row, or `None` where there is none.
    ///
    /// # Errors
    /// [`SqlError`], for more than one row too.
    pub async fn query_opt(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, SqlError> {
        let send = async |client: &Client, prepared: &Statement| {
            client.query_opt(prepared, parameters).await
        };
        self.send(statement, send).await
    }

    /// Records a result, as JSON, for copies of the record to be answered with. The last one
    /// counts.
    ///
    /// # Errors
    /// As [`Effects::record`].
    pub fn record<T: Serialize + ?Sized>(&mut self, result: &T) -> HandlerResult {
        self.recorded.record(result)
    }

    /// Records a result as it is.
    ///
    /// # Errors
    /// As [`Effects::record_bytes`].
    pub fn record_bytes(&mut self, result: impl Into<Box<[u8]>>) -> HandlerResult {
        self.recorded.record_bytes(result)
    }

    async fn send<T>(
        &self,
        text: &str,
        send: impl AsyncFnOnce(&Client, &Statement) -> Result<T, Error>,
    ) -> Result<T, SqlError> {
        if let Some(word) = refused_word(text) {
            self.stage().failed = true;
            return Err(SqlError::Refused { word });
        }
        let conn = self.conn.as_deref().ok_or(SqlError::NoTransaction)?;
        self.stage().running += 1;
        let answer = async {
            let statement = match conn.known(text) {
                Some(statement) => statement,
                None => self.behind_savepoint(conn, conn.prepared(text)).await?,
            };
            let request = send(conn.client(), &statement);
            self.behind_savepoint(conn, request).await
        };
        let answer = answer.await;
        let mut stage = self.stage();
        stage.running -= 1;
        if let Err(error) = &answer {
            stage.failed = true;
            if is_transient(error) {
                stage.passing.get_or_insert_with(|| describe(error));
            }
            conn.forget(text);
        }
        answer.map_err(SqlError::Database)
    }

    /// Sends the record's savepoint before its first request, without waiting in between: a record
    /// whose handler sends nothing costs nothing.
    async fn behind_savepoint<T>(
        &self,
        conn: &Conn,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let owed = {
            let mut stage = self.stage();
            let owed = match (stage.begun, stage.standing) {
                (true, _) => None,
                (false, true) => Some(SAVE_AGAIN),
                (false, false) => Some(SAVE),
            };
            (stage.begun, stage.standing) = (true, true);
            owed
        };
        let Some(owed) = owed else {
            return request.await;
        };
        let ((), answer) = try_join(conn.client().batch_execute(owed), request).await?;
        Ok(answer)
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a record's part of the transaction cannot be kept, or not be undone alone.
pub(super) enum Unkept {
    Spoilt,
    Lost(Error),
    /// A statement failed for a reason that passes: a deadlock, a server that shuts down.
    Passing(String),
}

/// For the transaction that it is a part of.
impl SqlEffects {
    pub(super) fn new() -> Self {
        Self {
            conn: None,
            recorded: Effects::default(),
            stage: Mutex::default(),
        }
    }

    pub(super) fn conn(&self) -> Option<&Arc<Conn>> {
        self.conn.as_ref()
    }

    /// Another transaction, on the same connection or on another one.
    pub(super) fn begin(&mut self, conn: Option<Arc<Conn>>) {
        *self = Self {
            conn,
            ..Self::new()
        };
    }

    pub(super) fn save(&mut self) {
        self.recorded = Effects::default();
        let mut stage = self.stage();
        *stage = Stage {
            standing: stage.standing,
            ..Stage::default()
        };
    }

    pub(super) async fn keep(&mut self) -> Result<Option<Box<[u8]>>, Unkept> {
        self.check_passing()?;
        let (failed, begun, unknown) = {
            let stage = self.stage();
            (stage.failed, stage.begun, stage.running > 0)
        };
        if failed {
            return Err(Unkept::Spoilt);
        }
        if let (true, true, Some(conn)) = (unknown, begun, &self.conn) {
            // A statement that nobody waited for may have failed.
            match conn.client().batch_execute(RELEASE).await {
                Ok(()) => self.stage().standing = false,
                Err(error) if error.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION) => {
                    return Err(Unkept::Spoilt);
                }
                Err(error) => return Err(Unkept::Lost(error)),
            }
        }
        Ok(std::mem::take(&mut self.recorded).into_result())
    }

    pub(super) async fn undo(&mut self) -> Result<(), Unkept> {
        self.recorded = Effects::default();
        self.check_passing()?;
        let begun = self.stage().begun;
        if let (true, Some(conn)) = (begun, &self.conn) {
            let undone = conn.client().batch_execute(UNDO).await;
            undone.map_err(Unkept::Lost)?;
            *self.stage() = Stage::default();
        }
        Ok(())
    }

    /// The record's attempts are not used up by what another transaction, or the server, has done.
    fn check_passing(&self) -> Result<(), Unkept> {
        let passing = self.stage().passing.take();
        passing.map_or(Ok(()), |why| Err(Unkept::Passing(why)))
    }
}

impl std::fmt::Debug for SqlEffects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqlEffects")
            .field("recorded", &self.recorded)
            .finish_non_exhaustive()
    }
}
