//! Units, written in one transaction, and what becomes of one whose outcome is not known.

use std::sync::Arc;

use futures_util::future::{try_join, try_join_all};

use super::conn::{Conn, Use};
use super::error::{Failure, describe, is_refused_commit};
use super::marks::Marks;
use super::rows::{self, Kept};
use super::shared::Shared;
use crate::store::{CommitUnit, PartitionId, StoreError};

/// Begins every transaction that writes. A statement then sees what was committed before it began:
/// a key that was waited for is found done. That it may write is set on each connection: a standby
/// would call it a feature that it does not have, instead of saying what it is.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

const COMMITTING: &str = "committing";

impl Shared {
    pub(super) async fn commit(self: Arc<Self>, units: Vec<CommitUnit>) -> Result<(), StoreError> {
        self.check_poison()?;
        check(&units)?;
        let token = self.token().map_err(|failure| failure.error)?;
        let mut outage = self.outage();
        loop {
            match self.try_commit(&units, token).await {
                Ok(()) => return Ok(()),
                Err(failure) => outage.pause(failure).await?,
            }
        }
    }

    async fn try_commit(self: &Arc<Self>, units: &[CommitUnit], token: i64) -> Result<(), Failure> {
        let Some(first) = units.first() else {
            return Ok(());
        };
        let mut writer = self.writer.lock().await;
        let conn = self.alive(&mut writer, Use::Writing).await?;
        let written = match self.write(&conn, units, token).await {
            Ok(rows) => rows.into_iter().collect::<Option<Vec<_>>>(),
            Err(failure) => {
                self.roll_back(&conn).await?;
                return Err(failure);
            }
        };
        let Some(written) = written else {
            self.roll_back(&conn).await?;
            return Err(self.why_refused(&conn, units).await?);
        };
        self.end(&conn, first, token).await?;
        self.take_in(&conn, written).await;
        Ok(())
    }

    /// Marks before heads: as in a lease's transaction, so that two never wait in a circle.
    async fn write(
        &self,
        conn: &Conn,
        units: &[CommitUnit],
        token: i64,
    ) -> Result<Vec<Option<Kept>>, Failure> {
        let mut marks = Marks::default();
        for unit in units {
            for entry in &unit.entries {
                marks.add(unit.id, token, entry);
            }
        }
        self.prepare(conn).await?;
        let begin = async {
            let begun = conn.batch_execute(BEGIN).await;
            begun.map_err(|error| self.failure(COMMITTING, &error))
        };
        let advance = units
            .iter()
            .map(|unit| self.advance(conn, unit, token, None));
        let work = try_join(self.put(conn, &marks), try_join_all(advance));
        let ((), ((), rows)) = try_join(begin, work).await?;
        Ok(rows)
    }

    /// What is sent in one go must be prepared before: preparing waits for an answer.
    pub(super) async fn prepare(&self, conn: &Conn) -> Result<(), Failure> {
        for text in [&self.sql.put, &self.sql.advance] {
            let prepared = conn.prepared(text).await;
            prepared.map_err(|error| self.failure(COMMITTING, &error))?;
        }
        Ok(())
    }

    pub(super) async fn put(&self, conn: &Conn, marks: &Marks<'_>) -> Result<(), Failure> {
        if marks.is_empty() {
            return Ok(());
        }
        let failed = |error| self.failure("writing marks", &error);
        let statement = conn.prepared(&self.sql.put).await.map_err(failed)?;
        let put = conn.execute(&statement, &marks.columns()).await;
        put.map(drop).map_err(failed)
    }

    /// Moves the head and writes the unit; `None` where that is refused. With a transaction's number
    /// it is also refused in any other transaction.
    pub(super) async fn advance(
        &self,
        conn: &Conn,
        unit: &CommitUnit,
        token: i64,
        transaction: Option<&str>,
    ) -> Result<Option<Kept>, Failure> {
        let failed = |error| self.failure("moving the head", &error);
        let statement = conn.prepared(&self.sql.advance).await.map_err(failed)?;
        let anchor = unit.anchor;
        let row = conn
            .query_opt(
                &statement,
                &[
                    &rows::id_sql(unit.id),
                    &i64::from(unit.epoch),
                    &unit.previous.get(),
                    &unit.next.get(),
                    &rows::gaps_sql(&unit.gaps),
                    &anchor.map(|anchor| anchor.offset),
                    &anchor.map(|anchor| anchor.timestamp_ms),
                    &anchor.map(|anchor| rows::digest_sql(anchor.digest)),
                    &unit.max_timestamp_ms,
                    &token,
                    &rows::keys_sql(unit),
                    &transaction,
                ],
            )
            .await;
        let row = row.map_err(failed)?;
        let kept = row.as_ref().map(rows::partition).transpose();
        kept.map_err(|foreign| foreign.failure(&self.place))
    }

    /// Why a unit was refused: the row as it is now says it.
    pub(super) async fn why_refused(
        &self,
        conn: &Conn,
        units: &[CommitUnit],
    ) -> Result<Failure, Failure> {
        self.refresh(conn).await?;
        for unit in units {
            let now = self.kept(unit.id)?;
            now.partition.check(unit).map_err(Failure::lasting)?;
        }
        Ok(Failure {
            transient: true,
            ..Failure::lasting(self.error(COMMITTING, "the head moved there and back meanwhile"))
        })
    }

    /// Gives up what is under way on a connection.
    pub(super) async fn roll_back(&self, conn: &Conn) -> Result<(), Failure> {
        let rolled_back = conn.batch_execute("ROLLBACK").await;
        rolled_back.map_err(|error| self.failure("rolling back", &error))
    }

    /// Commits the transaction in which the unit was written, durably. An outcome that the server
    /// did not tell is found out about.
    pub(super) async fn end(
        self: &Arc<Self>,
        conn: &Conn,
        unit: &CommitUnit,
        token: i64,
    ) -> Result<(), Failure> {
        // A role, or a handler, may have set less; here it is too late to undo.
        let commit = format!("SET LOCAL synchronous_commit = {}; COMMIT", self.sync);
        let Err(error) = conn.batch_execute(&commit).await else {
            return Ok(());
        };
        if is_refused_commit(&error) {
            return Err(self.failure(COMMITTING, &error));
        }
        let asked = Asked {
            id: unit.id,
            next: unit.next.get(),
            token,
            cause: describe(&error),
        };
        tracing::warn!(
            error = asked.cause,
            place = self.place,
            "the outcome of a commit was not told, and is asked for"
        );
        let asking = self.handle.spawn(Arc::clone(self).find_out(asked));
        match asking.await {
            Ok(Ok(true)) => Ok(()),
            // Nothing of it remains.
            Ok(Ok(false)) => Err(self.failure(COMMITTING, &error)),
            Ok(Err(error)) => Err(Failure::lasting(error)),
            Err(_) => Err(Failure::lasting(self.error(COMMITTING, GONE))),
        }
    }

    /// Whether a commit took place. It is never guessed.
    async fn find_out(self: Arc<Self>, asked: Asked) -> Result<bool, StoreError> {
        let mut outage = self.outage();
        let last = loop {
            match self.is_there(&asked).await {
                Ok(there) => return Ok(there),
                // Also for what will not pass: nothing else can be done.
                Err(failure) => {
                    let again = Failure {
                        transient: true,
                        ..failure
                    };
                    if let Err(error) = outage.pause(again).await {
                        break error;
                    }
                }
            }
        };
        let error = self.error(
            COMMITTING,
            &format!(
                "the connection was lost in the middle ({}), and whether the commit up to offset \
                 {} took place could not be found out since: {last}. Start again when the database \
                 can be reached: it knows",
                asked.cause, asked.next
            ),
        );
        self.poison(&error);
        Err(error)
    }

    async fn is_there(&self, asked: &Asked) -> Result<bool, Failure> {
        let failed = |error| self.failure("asking for the outcome of a commit", &error);
        let conn = self.connect(Use::Writing).await?;
        let id = rows::id_sql(asked.id);
        conn.batch_execute(BEGIN).await.map_err(failed)?;
        // The old transaction has this row until it has ended, one way or the other.
        let head = conn.query(&self.sql.partition_for_update, &[&id]).await;
        head.map_err(failed)?;
        let unit = conn
            .query_opt(&self.sql.unit_is_there, &[&id, &asked.next, &asked.token])
            .await;
        Ok(unit.map_err(failed)?.is_some())
    }

    /// What was committed, for whoever asks for heads.
    pub(super) async fn take_in(&self, conn: &Conn, written: Vec<Kept>) {
        let mut missing = false;
        for kept in written {
            missing |= !self.known().put(kept);
        }
        if missing {
            // Only what is shown of them is old then.
            if let Err(failure) = self.refresh(conn).await {
                tracing::debug!(error = %failure.error, "the partitions were not read again");
            }
        }
    }

    /// A number for one commit: its unit and its marks are known by it.
    pub(super) fn token(&self) -> Result<i64, Failure> {
        let mut bytes = [0; 8];
        match getrandom::fill(&mut bytes) {
            Ok(()) => Ok(i64::from_le_bytes(bytes)),
            Err(error) => Err(Failure::lasting(
                self.error(COMMITTING, &format!("no random numbers: {error}")),
            )),
        }
    }
}

/// The commit whose outcome is asked for.
struct Asked {
    id: PartitionId,
    next: i64,
    token: i64,
    cause: String,
}

pub(super) const GONE: &str = "the store is closed, or its thread has panicked";

/// What can be refused without the database.
pub(super) fn check(units: &[CommitUnit]) -> Result<(), StoreError> {
    for (at, unit) in units.iter().enumerate() {
        if units[..at].iter().any(|other| other.id == unit.id) {
            return Err(StoreError::Misused(
                "two units of one partition in one commit",
            ));
        }
        if !unit.gaps.fit_below(unit.next) {
            return Err(StoreError::Misused("gaps that do not lie below their head"));
        }
    }
    Ok(())
}
