//! The transactions of one lease.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::try_join3;

use super::connect::Conn;
use super::effects::{SqlEffects, Unkept};
use super::error::Failure;
use super::marks::Marks;
use super::rows;
use super::shared::Shared;
use super::write::{BEGIN, GONE, check};
use crate::key::Fingerprint;
use crate::record::TopicPartition;
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

/// The transaction under way.
struct Open {
    /// The number that the server gave it: nothing is committed in any other.
    number: String,
    token: i64,
    /// The claims that are rows of its own. Of the others the rows are only locked.
    fresh: Vec<Claimed>,
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
            Ok((open, claimed)) => {
                self.open = Some(open);
                Ok(claimed)
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

    async fn claim(
        &self,
        conn: &Conn,
        keys: &[Claimed],
        token: i64,
    ) -> Result<(Open, Vec<bool>), TransactionError> {
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
        let (_, claimed, now) = try_join3(
            client.batch_execute(BEGIN),
            client.query(&claim, &[fingerprints, offsets, digests, over, &id, &token]),
            client.query_opt(&epoch, &[&id]),
        )
        .await
        .map_err(failed)?;
        let foreign = |foreign: rows::Foreign| foreign.failure(&shared.place);
        let Some(now) = now else {
            return Err(Failure::lasting(StoreError::Misused(
                crate::store::partitions::NEVER_LEASED,
            ))
            .into());
        };
        let (newest, number) = rows::epoch(&now).map_err(foreign)?;
        if newest != self.lease.epoch {
            return Err(TransactionError::Failed(self.fenced(newest)));
        }
        let mut won = HashSet::with_capacity(claimed.len());
        let mut fresh = HashSet::with_capacity(claimed.len());
        for row in &claimed {
            let (key, of) = rows::claim(row).map_err(foreign)?;
            won.insert(key);
            if of == token {
                fresh.insert(key);
            }
        }
        // A key that is asked for twice is the first one's.
        let answers = keys.iter().map(|key| won.remove(&key.fingerprint));
        let answers: Vec<bool> = answers.collect();
        let claims = keys.iter().zip(&answers).filter(|(_, won)| **won);
        let fresh = claims
            .map(|(claim, _)| *claim)
            .filter(|claim| fresh.contains(&claim.fingerprint))
            .collect();
        let open = Open {
            number,
            token,
            fresh,
        };
        Ok((open, answers))
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
        let (_, (), kept) = try_join3(
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

impl Open {
    /// The marks that are not yet what the unit says, and the claims that it does not have.
    fn sort_out<'a>(&'a self, unit: &'a CommitUnit) -> (Marks<'a>, Vec<&'a [u8]>) {
        let as_claimed: HashSet<(Fingerprint, i64, u64)> = self
            .fresh
            .iter()
            .map(|claim| (claim.fingerprint, claim.offset, claim.value_digest))
            .collect();
        let mut marks = Marks::default();
        let mut kept = HashSet::with_capacity(unit.entries.len());
        let mut standing = HashSet::new();
        for entry in &unit.entries {
            kept.insert(entry.fingerprint);
            let claim = (entry.fingerprint, entry.offset, entry.value_digest);
            let plain = entry.result.is_none() && rows::flags_sql(entry) == 0;
            if plain && as_claimed.contains(&claim) {
                standing.insert(entry.fingerprint);
            } else if !standing.contains(&entry.fingerprint) {
                marks.add(unit.id, self.token, entry);
            }
        }
        let given_back = self.fresh.iter();
        let given_back = given_back
            .filter(|claim| !kept.contains(&claim.fingerprint))
            .map(|claim| &claim.fingerprint.as_bytes()[..])
            .collect();
        (marks, given_back)
    }
}

/// Keys as the columns of one statement, each once.
#[derive(Default)]
struct Columns<'a> {
    fingerprints: Vec<&'a [u8]>,
    offsets: Vec<i64>,
    digests: Vec<i64>,
    over_restored: Vec<&'a [u8]>,
}

impl<'a> Columns<'a> {
    fn new(keys: &'a [Claimed]) -> Self {
        let mut columns = Self::default();
        let mut seen = HashSet::with_capacity(keys.len());
        for key in keys {
            let bytes: &[u8] = key.fingerprint.as_bytes();
            if !seen.insert(bytes) {
                continue;
            }
            columns.fingerprints.push(bytes);
            columns.offsets.push(key.offset);
            columns.digests.push(rows::digest_sql(key.value_digest));
            if key.over_restored {
                columns.over_restored.push(bytes);
            }
        }
        columns
    }
}

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
                Err(Unkept::Lost(error)) => Err(self.shared.failure(WRITING, &error).into()),
                Err(Unkept::Spoilt) => Err(self.spoilt()),
            }
        })
    }

    fn undo(&mut self) -> Answer<'_, ()> {
        Box::pin(async move {
            let undone = self.effects.undo().await;
            undone.map_err(|error| self.shared.failure("undoing a record", &error).into())
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
