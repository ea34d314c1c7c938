//! Retention: the oldest units go, and the marks that they wrote, in steps that nobody waits for.

use std::sync::Arc;
use std::time::Duration;

use super::conn::{Conn, Use};
use super::error::Failure;
use super::rows;
use super::shared::Shared;
use crate::record::NextOffset;
use crate::store::{Expired, PartitionId, StoreError};

/// Units of one step: some tens of thousands of keys at the most, some tens of milliseconds.
const UNITS_AT_ONCE: i64 = 64;
/// Keys after which a step ends, whatever its units.
const KEYS_AT_ONCE: usize = 20_000;

/// How far a partition's units may go.
#[derive(Clone, Copy)]
struct Limits {
    position: NextOffset,
    oldest_ms: i64,
}

/// One step's units.
struct Front {
    next: NextOffset,
    tokens: Vec<i64>,
    keys: Vec<u8>,
}

impl Shared {
    pub(super) async fn expire(self: Arc<Self>, keep: Duration) -> Result<Expired, StoreError> {
        let keep_ms = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
        let mut expired = Expired::default();
        let mut outage = self.outage();
        let mut conn: Option<Arc<Conn>> = None;
        // One after the other, from the beginning after a failure: what is done stays done.
        loop {
            let before = expired;
            match self.try_expire(&mut conn, keep_ms, &mut expired).await {
                Ok(()) => return Ok(expired),
                Err(failure) => {
                    if expired != before {
                        outage = self.outage();
                    }
                    outage.pause(failure).await?;
                }
            }
        }
    }

    async fn try_expire(
        &self,
        slot: &mut Option<Arc<Conn>>,
        keep_ms: i64,
        expired: &mut Expired,
    ) -> Result<(), Failure> {
        let conn = self.alive(slot, Use::Reading).await?;
        self.refresh(&conn).await?;
        let ids = self.known().ids();
        for id in ids {
            let Some(limits) = self.limits(&conn, id, keep_ms).await? else {
                continue;
            };
            while let Some(front) = self.front(&conn, id, limits).await? {
                self.drop_front(&conn, id, &front, expired).await?;
            }
        }
        self.refresh(&conn).await
    }

    /// What may go as of now: a call ends, however fast new units come.
    async fn limits(
        &self,
        conn: &Conn,
        id: PartitionId,
        keep_ms: i64,
    ) -> Result<Option<Limits>, Failure> {
        let failed = |error| self.failure("looking for what expired", &error);
        let kept = self.kept(id)?;
        let Some(head) = kept.partition.head else {
            return Ok(None);
        };
        // One record from the future must not take all others with it.
        let clock = "SELECT floor(extract(epoch FROM now()) * 1000)::bigint";
        let row = conn.query_one(clock, &[]).await.map_err(failed)?;
        let now: i64 = row.try_get(0).map_err(failed)?;
        Ok(Some(Limits {
            position: kept.partition.gaps.first().unwrap_or(head.next),
            oldest_ms: head.max_timestamp_ms.min(now).saturating_sub(keep_ms),
        }))
    }

    /// The oldest units that may go: below everything that is not done, and so old by the time of
    /// their records.
    async fn front(
        &self,
        conn: &Conn,
        id: PartitionId,
        limits: Limits,
    ) -> Result<Option<Front>, Failure> {
        let failed = |error| self.failure("looking for what expired", &error);
        let position = limits.position;
        let statement = conn.prepared(&self.sql.expirable).await.map_err(failed)?;
        let rows = conn
            .query(
                &statement,
                &[&rows::id_sql(id), &position.get(), &UNITS_AT_ONCE],
            )
            .await
            .map_err(failed)?;
        let mut front = None;
        for row in &rows {
            let foreign = |foreign: rows::Foreign| foreign.failure(&self.place);
            let unit = rows::old_unit(row).map_err(foreign)?;
            // A unit whose records have no time is never old.
            let is_old = unit.max_timestamp_ms >= 0 && unit.max_timestamp_ms < limits.oldest_ms;
            let front = front.get_or_insert_with(|| Front {
                next: NextOffset::ZERO,
                tokens: Vec::new(),
                keys: Vec::new(),
            });
            if !is_old || rows::keys(&front.keys).count() >= KEYS_AT_ONCE {
                break;
            }
            front.next = unit.next;
            front.tokens.push(unit.token);
            front.keys.extend(unit.keys);
        }
        Ok(front.filter(|front| !front.tokens.is_empty()))
    }

    /// First it is said that keys may be missing, then they are: each statement by itself, so that
    /// no commit waits for the deletion.
    async fn drop_front(
        &self,
        conn: &Conn,
        id: PartitionId,
        front: &Front,
        expired: &mut Expired,
    ) -> Result<(), Failure> {
        let failed = |error| self.failure("deleting what expired", &error);
        let number = rows::id_sql(id);
        let next = front.next.get();
        let client = conn;
        let said = conn.prepared(&self.sql.retain_from).await.map_err(failed)?;
        let said = client.execute(&said, &[&number, &next]).await;
        said.map_err(failed)?;
        self.known().retain_from(id, front.next);
        let keys: Vec<&[u8]> = rows::keys(&front.keys).collect();
        let marks = conn.prepared(&self.sql.expire_marks).await;
        let marks = marks.map_err(failed)?;
        let deleted = client
            .execute(&marks, &[&keys, &number, &front.tokens])
            .await;
        expired.keys += deleted.map_err(failed)?;
        // Behind the marks: the units say where those are.
        let units = conn.prepared(&self.sql.expire_units).await;
        let units = units.map_err(failed)?;
        let deleted = client
            .execute(&units, &[&number, &next, &front.tokens])
            .await;
        expired.units += deleted.map_err(failed)?;
        Ok(())
    }
}
