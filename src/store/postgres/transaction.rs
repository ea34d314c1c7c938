//! The transactions of one lease.

use std::sync::Arc;

use futures_util::future::try_join3;
use tokio_postgres::error::SqlState;

use super::claims::{Columns, Open};
use super::connect::Conn;
use super::effects::{SqlEffects, Unkept};
use super::error::Failure;
use super::rows;
use super::shared::Shared;
use super::write::{BEGIN, GONE, check};
use crate::record::TopicPartition;
use crate::store::partitions::NEVER_LEASED;
use crate::store::transaction::{Answer, Claimed, Transaction, TransactionError};
use crate::store::{CommitUnit, Lease, StoreError};

const CLAIMING: &str = "claiming keys";
const WRITING: &str = "writing in a transaction";

pub(super) struct LeaseTransaction {
    shared: Arc<Shared>,
    partition: TopicPartition,
    lease: Lease,
    effects: SqlEffects,
    open: Option<Open>,
    /// Whether the connection may have a transaction, also where a call was not waited for.
    under_way: bool,
}

impl LeaseTransaction {
    pub(super) fn new(shared: Arc<Shared>, partition: &TopicPartition, lease: &Lease) -> Self {
        Self {
            shared,
            partition: partition.clone(),
            lease: *lease,
            effects: SqlEffects::new(),
            open: None,
            under_way: false,
        }
    }

    async fn try_begin(&mut self, keys: &[Claimed]) -> Result<Vec<bool>, TransactionError> {
        self.try_roll_back().await;
        self.shared
            .check_poison()
            .map_err(TransactionError::Failed)?;
        let conn = self.conn().await?;
        let token = self.shared.token()?;
        self.effects.begin(Some(Arc::clone(&conn)));
        self.under_way = true;
        let begun = self.claim(&conn, keys, token).await;
        match begun {
            Ok(Some((open, claimed))) => {
                self.open = Some(open);
                Ok(claimed)
            }
            Ok(None) => {
                self.abandon(&conn).await;
                Ok(vec![false; keys.len()])
            }
            Err(error) => {
                self.abandon(&conn).await;
                Err(error)
            }
        }
    }

    /// The connection, made where there is none: on the store's runtime, since the caller's may not
    /// be there.
    async fn conn(&self) -> Result<Arc<Conn>, TransactionError> {
        if let Some(conn) = self.effects.conn().filter(|conn| !conn.is_closed()) {
            return Ok(Arc::clone(conn));
        }
        let shared = Arc::clone(&self.shared);
        let connecting = async move { shared.connect_lease().await };
        match self.shared.handle.spawn(connecting).await {
            Ok(conn) => Ok(Arc::new(conn?)),
            Err(_) => Err(TransactionError::Failed(
                self.shared.error("connecting", GONE),
            )),
        }
    }

    /// `None` where one of the keys is in another's hands for longer than is waited.
    async fn claim(
        &self,
        conn: &Conn,
        keys: &[Claimed],
        token: i64,
    ) -> Result<Option<(Open, Vec<bool>)>, TransactionError> {
        let shared = &self.shared;
        let failed = |error| shared.failure(CLAIMING, &error);
        let claim = conn.prepared(&shared.sql.claim).await.map_err(failed)?;
        let epoch = conn.prepared(&shared.sql.epoch).await.map_err(failed)?;
        shared.prepare(conn).await?;
        let columns = Columns::new(keys);
        let id = rows::id_sql(self.lease.id);
        let client = conn.client();
        let (fingerprints, offsets, digests, over) = (
            &columns.fingerprints,
            &columns.offsets,
            &columns.digests,
            &columns.over_restored,
        );
        let answers = try_join3(
            client.batch_execute(BEGIN),
            client.query(&claim, &[fingerprints, offsets, digests, over, &id, &token]),
            client.query_opt(&epoch, &[&id]),
        )
        .await;
        let ((), claimed, now) = match answers {
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => return Ok(None),
            answers => answers.map_err(failed)?,
        };
        let foreign = |foreign: rows::Foreign| foreign.failure(&shared.place);
        let never_leased = || Failure::lasting(StoreError::Misused(NEVER_LEASED));
        let now = now.ok_or_else(never_leased)?;
        let (newest, number) = rows::epoch(&now).map_err(foreign)?;
        if newest != self.lease.epoch {
            return Err(TransactionError::Failed(self.fenced(newest)));
        }
        let open = Open::new(number, token, keys, &claimed);
        Ok(Some(open.map_err(foreign)?))
    }

    fn fenced(&self, newest: u32) -> StoreError {
        StoreError::Fenced {
            partition: self.partition.clone(),
            ours: self.lease.epoch,
            newest,
        }
    }

    async fn try_commit(&mut self, unit: &CommitUnit) -> Result<(), TransactionError> {
        let (Some(open), Some(conn)) = (self.open.take(), self.effects.conn().cloned()) else {
            return Err(TransactionError::Failed(NO_TRANSACTION));
        };
        let written = self.write(&conn, &open, unit).await;
        match written {
            Ok(()) => {
                self.under_way = false;
                self.effects.begin(Some(conn));
                Ok(())
            }
            Err(error) => {
                self.abandon(&conn).await;
                Err(error)
            }
        }
    }

    async fn write(
        &self,
        conn: &Conn,
        open: &Open,
        unit: &CommitUnit,
    ) -> Result<(), TransactionError> {
        let shared = &self.shared;
        check(std::slice::from_ref(unit)).map_err(TransactionError::Failed)?;
        let (marks, given_back) = open.sort_out(unit);
        let ((), (), kept) = try_join3(
            self.give_back(conn, &given_back, open.token),
            shared.put(conn, &marks),
            shared.advance(conn, unit, open.token, Some(&open.number)),
        )
        .await?;
        let Some(kept) = kept else {
            shared.roll_back(conn).await?;
            let why = shared.why_refused(conn, std::slice::from_ref(unit)).await?;
            tracing::debug!(error = %why.error, "a unit was refused without a reason");
            return Err(TransactionError::Failed(shared.error(
                WRITING,
                "the transaction is another than was begun: something ended it in between, and \
                 nothing is committed in its place",
            )));
        };
        shared.end(conn, unit, open.token).await?;
        shared.take_in(conn, vec![kept]).await;
        Ok(())
    }

    async fn give_back(&self, conn: &Conn, keys: &[&[u8]], token: i64) -> Result<(), Failure> {
        if keys.is_empty() {
            return Ok(());
        }
        let failed = |error| self.shared.failure(WRITING, &error);
        let id = rows::id_sql(self.lease.id);
        let give_back = &self.shared.sql.give_back;
        let given = conn
            .client()
            .execute(give_back, &[&keys, &id, &token])
            .await;
        given.map(drop).map_err(failed)
    }

    async fn try_roll_back(&mut self) {
        if let (true, Some(conn)) = (self.under_way, self.effects.conn().cloned()) {
            self.abandon(&conn).await;
        }
    }

    /// Leaves no transaction behind: without a connection there is none.
    async fn abandon(&mut self, conn: &Arc<Conn>) {
        self.open = None;
        let rolled_back = self.shared.roll_back(conn).await;
        let conn = rolled_back.is_ok().then(|| Arc::clone(conn));
        self.effects.begin(conn);
        self.under_way = false;
    }
}

const NO_TRANSACTION: StoreError = StoreError::Misused("no transaction has been begun");

impl Transaction<SqlEffects> for LeaseTransaction {
    fn begin<'a>(&'a mut self, keys: &'a [Claimed]) -> Answer<'a, Vec<bool>> {
        Box::pin(self.try_begin(keys))
    }

    fn save(&mut self) -> Answer<'_, ()> {
        let open = self.open.is_some();
        self.effects.save();
        Box::pin(async move {
            let error = TransactionError::Failed(NO_TRANSACTION);
            open.then_some(()).ok_or(error)
        })
    }

    fn effects(&mut self) -> &mut SqlEffects {
        &mut self.effects
    }

    fn keep(&mut self) -> Answer<'_, Option<Box<[u8]>>> {
        Box::pin(async move {
            match self.effects.keep().await {
                Ok(result) => Ok(result),
                Err(unkept) => Err(self.unkept(WRITING, unkept)),
            }
        })
    }

    fn undo(&mut self) -> Answer<'_, ()> {
        Box::pin(async move {
            let undone = self.effects.undo().await;
            undone.map_err(|unkept| self.unkept("undoing a record", unkept))
        })
    }

    fn commit<'a>(&'a mut self, unit: &'a CommitUnit) -> Answer<'a, ()> {
        Box::pin(self.try_commit(unit))
    }

    fn roll_back(&mut self) -> Answer<'_, ()> {
        Box::pin(async move {
            self.try_roll_back().await;
            Ok(())
        })
    }
}

impl LeaseTransaction {
    fn unkept(&self, operation: &'static str, unkept: Unkept) -> TransactionError {
        match unkept {
            Unkept::Lost(error) => self.shared.failure(operation, &error).into(),
            Unkept::Passing(why) => TransactionError::Aborted(self.shared.error(operation, &why)),
            Unkept::Spoilt => self.spoilt(),
        }
    }

    fn spoilt(&self) -> TransactionError {
        let closed = self.effects.conn().is_none_or(|conn| conn.is_closed());
        if closed {
            let error = self.shared.error(WRITING, "the connection was lost");
            return TransactionError::Aborted(error);
        }
        TransactionError::Spoilt(self.shared.error(
            WRITING,
            "a statement of the handler failed, and the handler returned Ok: what it wrote before \
             cannot be kept without it. Return the error, or use ON CONFLICT DO NOTHING",
        ))
    }
}
