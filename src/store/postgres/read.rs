//! What is only read: marks, units, results, counts.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::Failure;
use super::rows;
use super::shared::Shared;
use crate::key::Fingerprint;
use crate::record::NextOffset;
use crate::store::{CommitUnit, Mark, PartitionId, Place, StoreError};

/// Up to here keys are counted; above, the server's estimate is taken.
const COUNTED_MAX: i64 = 100_000;

impl Shared {
    pub(super) async fn lookup(
        self: Arc<Self>,
        keys: Vec<Fingerprint>,
    ) -> Result<Vec<Option<Mark>>, StoreError> {
        let mut outage = self.outage();
        loop {
            match self.try_lookup(&keys).await {
                Ok(found) => return Ok(found),
                Err(failure) => outage.pause(failure).await?,
            }
        }
    }

    async fn try_lookup(&self, keys: &[Fingerprint]) -> Result<Vec<Option<Mark>>, Failure> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let conn = self.reader().await?;
        let failed = |error| self.failure("looking keys up", &error);
        let statement = conn.prepared(&self.sql.lookup).await.map_err(failed)?;
        let list: Vec<&[u8]> = keys.iter().map(|key| &key.as_bytes()[..]).collect();
        let rows = conn.client().query(&statement, &[&list]).await;
        let mut found = HashMap::new();
        let mut strangers = false;
        for row in rows.map_err(failed)? {
            let mark = rows::mark(&row).map_err(|foreign| foreign.failure(&self.place));
            let (key, mark) = mark?;
            strangers |= !self.known().has(mark.id);
            found.insert(key, mark);
        }
        if strangers {
            // Of a partition that another member has begun.
            self.refresh(&conn).await?;
        }
        Ok(keys.iter().map(|key| found.get(key).copied()).collect())
    }

    /// Up to where keys of a partition may have expired, by whichever member.
    pub(super) async fn read_retained_from(
        self: Arc<Self>,
        id: PartitionId,
    ) -> Result<NextOffset, StoreError> {
        let mut outage = self.outage();
        loop {
            match self.try_retained_from(id).await {
                Ok(from) => return Ok(from),
                Err(failure) => outage.pause(failure).await?,
            }
        }
    }

    async fn try_retained_from(&self, id: PartitionId) -> Result<NextOffset, Failure> {
        let conn = self.reader().await?;
        let failed = |error| self.failure("reading what has expired", &error);
        let statement = conn.prepared(&self.sql.retained_from).await;
        let statement = statement.map_err(failed)?;
        let row = conn
            .client()
            .query_opt(&statement, &[&rows::id_sql(id)])
            .await;
        let Some(row) = row.map_err(failed)? else {
            return Ok(NextOffset::ZERO);
        };
        let from = rows::retained_from(&row).map_err(|foreign| foreign.failure(&self.place))?;
        self.known().retain_from(id, from);
        Ok(from)
    }

    pub(super) async fn unit_behind(
        self: Arc<Self>,
        id: PartitionId,
        place: Place,
    ) -> Result<Option<(Place, CommitUnit)>, StoreError> {
        let mut outage = self.outage();
        loop {
            match self.try_unit_behind(id, place).await {
                Ok(unit) => return Ok(unit),
                Err(failure) => outage.pause(failure).await?,
            }
        }
    }

    async fn try_unit_behind(
        &self,
        id: PartitionId,
        place: Place,
    ) -> Result<Option<(Place, CommitUnit)>, Failure> {
        let conn = self.reader().await?;
        let failed = |error| self.failure("reading a unit", &error);
        let foreign = |foreign: rows::Foreign| foreign.failure(&self.place);
        let statement = conn.prepared(&self.sql.unit_behind).await.map_err(failed)?;
        let number = rows::id_sql(id);
        let (next, step) = (place.next.get(), i64::from(place.step));
        let row = conn
            .client()
            .query_opt(&statement, &[&number, &next, &step])
            .await;
        let Some(row) = row.map_err(failed)? else {
            return Ok(None);
        };
        let mut found = rows::unit(id, &row).map_err(foreign)?;
        if !found.keys.is_empty() {
            let keys: Vec<&[u8]> = rows::keys(&found.keys).collect();
            let statement = conn.prepared(&self.sql.unit_entries).await;
            let statement = statement.map_err(failed)?;
            let marks = conn
                .client()
                .query(&statement, &[&keys, &number, &found.token])
                .await;
            let marks = marks.map_err(failed)?;
            found.unit.entries = rows::entries(&found.keys, &marks).map_err(foreign)?;
        }
        Ok(Some((found.place, found.unit)))
    }

    pub(super) async fn result(
        self: Arc<Self>,
        key: Fingerprint,
        mark: Mark,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let mut outage = self.outage();
        loop {
            match self.try_result(&key, &mark).await {
                Ok(result) => return Ok(result),
                Err(failure) => outage.pause(failure).await?,
            }
        }
    }

    async fn try_result(&self, key: &Fingerprint, mark: &Mark) -> Result<Option<Vec<u8>>, Failure> {
        let conn = self.reader().await?;
        let failed = |error| self.failure("reading a result", &error);
        let statement = conn.prepared(&self.sql.result).await.map_err(failed)?;
        let key: &[u8] = key.as_bytes();
        let number = rows::id_sql(mark.id);
        let row = conn
            .client()
            .query_opt(&statement, &[&key, &number, &mark.offset])
            .await;
        let row = row.map_err(failed)?;
        let result = row.and_then(|row| row.try_get::<_, Option<Vec<u8>>>(0).transpose());
        match result.transpose().map_err(failed)? {
            Some(result) => Ok(Some(result)),
            // `None` would answer a copy as if its original had recorded nothing.
            None => Err(Failure::lasting(self.error(
                "reading a result",
                "the mark whose result is asked for is gone: it expired since it was looked up, or \
                 was deleted by hand",
            ))),
        }
    }

    /// How many keys there are; above a hundred thousand as the server estimates.
    pub(super) async fn count(self: Arc<Self>) -> Result<u64, StoreError> {
        let mut outage = self.outage();
        loop {
            match self.try_count().await {
                Ok(count) => return Ok(count),
                Err(failure) => outage.pause(failure).await?,
            }
        }
    }

    async fn try_count(&self) -> Result<u64, Failure> {
        let conn = self.reader().await?;
        let failed = |error| self.failure("counting keys", &error);
        let counted = conn
            .client()
            .query_one(&self.sql.count, &[&COUNTED_MAX])
            .await;
        let counted: i64 = counted.map_err(failed)?.try_get(0).map_err(failed)?;
        if counted < COUNTED_MAX {
            return Ok(counted.unsigned_abs());
        }
        let estimate = conn.client().query_one(&self.sql.estimate, &[]).await;
        let estimate: i64 = estimate.map_err(failed)?.try_get(0).map_err(failed)?;
        // Not yet analysed: at least that many are there.
        Ok(estimate.max(counted).unsigned_abs())
    }
}
