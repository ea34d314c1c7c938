//! Who owns the store, and who owns a partition.

use std::sync::Arc;

use super::connect::{Conn, Use};
use super::error::Failure;
use super::rows::{self, Kept, Stamp};
use super::schema;
use super::shared::Shared;
use crate::key::HashKey;
use crate::record::{NextOffset, TopicPartition};
use crate::store::partitions::{NEVER_LEASED, fence};
use crate::store::{Lease, Owner, PartitionId, StoreError, owner_matches, same};

impl Shared {
    pub(super) async fn bind(self: Arc<Self>, owner: Owner) -> Result<HashKey, StoreError> {
        let stamp = self.stamp(Some(&owner), None).await?;
        match stamp.owner {
            Some(theirs) => owner_matches(&self.place, &theirs, &owner).map(|()| stamp.hash_key),
            None => Err(self.error("binding the store", "the stamp did not take its owner")),
        }
    }

    pub(super) async fn bind_cluster(self: Arc<Self>, id: String) -> Result<(), StoreError> {
        let stamp = self.stamp(None, Some(&id)).await?;
        match stamp.cluster {
            Some(theirs) => same(&self.place, "cluster", &theirs, &id),
            None => Err(self.error("binding the store", "the stamp did not take its cluster")),
        }
    }

    async fn stamp(
        &self,
        owner: Option<&Owner>,
        cluster: Option<&str>,
    ) -> Result<Stamp, StoreError> {
        let mut outage = self.outage();
        loop {
            match self.try_stamp(owner, cluster).await {
                Ok(stamp) => return Ok(stamp),
                Err(failure) => outage.pause(failure).await?,
            }
        }
    }

    /// Writes what the stamp does not say yet, and reads what it says then: the first one stands,
    /// whoever wrote it.
    async fn try_stamp(
        &self,
        owner: Option<&Owner>,
        cluster: Option<&str>,
    ) -> Result<Stamp, Failure> {
        let mut writer = self.writer.lock().await;
        let conn = self.alive(&mut writer, Use::Writing).await?;
        let failed = |error| self.failure("binding the store", &error);
        if let Some(Owner {
            group,
            recipe,
            scope,
        }) = owner
        {
            let bound = conn
                .client()
                .execute(&self.sql.bind, &[group, recipe, scope])
                .await;
            bound.map_err(failed)?;
        }
        if let Some(cluster) = cluster {
            let bind = &self.sql.bind_cluster;
            let bound = conn.client().execute(bind, &[&cluster]).await;
            bound.map_err(failed)?;
        }
        let row = conn.client().query_one(&self.sql.stamp, &[]).await;
        let row = row.map_err(failed)?;
        rows::stamp(&row).map_err(|foreign| foreign.failure(&self.place))
    }

    pub(super) async fn lease(
        self: Arc<Self>,
        partition: TopicPartition,
    ) -> Result<Lease, StoreError> {
        self.check_poison()?;
        let mut outage = self.outage();
        loop {
            // One whose answer was lost is taken again: the next one is in doubt for it, which is
            // never wrong.
            match self.try_lease(&partition).await {
                Ok(lease) => return Ok(lease),
                Err(failure) => outage.pause(failure).await?,
            }
        }
    }

    async fn try_lease(&self, partition: &TopicPartition) -> Result<Lease, Failure> {
        let mut writer = self.writer.lock().await;
        let conn = self.alive(&mut writer, Use::Writing).await?;
        if let Some(lease) = self.take(&conn, partition).await? {
            return Ok(lease);
        }
        self.register(&conn, partition).await?;
        let lease = self.take(&conn, partition).await?;
        lease.ok_or_else(|| {
            let message = "a partition that was just registered is not there";
            Failure::lasting(self.error("taking a partition", message))
        })
    }

    /// `None` where the partition has no number yet.
    async fn take(
        &self,
        conn: &Conn,
        partition: &TopicPartition,
    ) -> Result<Option<Lease>, Failure> {
        let failed = |error| self.failure("taking a partition", &error);
        let statement = conn.prepared(&self.sql.lease).await.map_err(failed)?;
        let row = conn
            .client()
            .query_opt(&statement, &[&partition.topic(), &partition.partition()])
            .await;
        let Some(row) = row.map_err(failed)? else {
            return Ok(None);
        };
        let foreign = |foreign: rows::Foreign| foreign.failure(&self.place);
        let kept = rows::partition(&row).map_err(foreign)?;
        let lease = Lease {
            id: kept.id,
            epoch: kept.partition.epoch,
            head: kept.partition.head,
            in_doubt: rows::get(&row, 14, "leased").map_err(foreign)?,
        };
        if !self.known().put(kept) {
            self.refresh(conn).await?;
        }
        Ok(Some(lease))
    }

    async fn register(&self, conn: &Conn, partition: &TopicPartition) -> Result<(), Failure> {
        let failed = |error| self.failure("registering a partition", &error);
        conn.client().batch_execute("BEGIN").await.map_err(failed)?;
        let registered = async {
            schema::lock(conn, &self.options).await?;
            let register = &self.sql.register;
            let (topic, number) = (partition.topic(), partition.partition());
            conn.client().execute(register, &[&topic, &number]).await
        };
        let registered = registered.await;
        let end = if registered.is_ok() {
            "COMMIT"
        } else {
            "ROLLBACK"
        };
        let ended = conn.client().batch_execute(end).await;
        registered.map(drop).and(ended).map_err(failed)
    }

    pub(super) async fn release(self: Arc<Self>, lease: Lease) -> Result<(), StoreError> {
        self.check_poison()?;
        let mut outage = self.outage();
        loop {
            match self.try_release(&lease).await {
                Ok(()) => return Ok(()),
                Err(failure) => outage.pause(failure).await?,
            }
        }
    }

    async fn try_release(&self, lease: &Lease) -> Result<(), Failure> {
        let mut writer = self.writer.lock().await;
        let conn = self.alive(&mut writer, Use::Writing).await?;
        let failed = |error| self.failure("giving a partition up", &error);
        let statement = conn.prepared(&self.sql.release).await.map_err(failed)?;
        let (number, epoch) = (rows::id_sql(lease.id), i64::from(lease.epoch));
        let released = conn.client().execute(&statement, &[&number, &epoch]).await;
        if released.map_err(failed)? == 1 {
            return Ok(());
        }
        self.refresh(&conn).await?;
        let now = self.kept(lease.id)?;
        fence(&now.partition, lease.epoch).map_err(Failure::lasting)
    }

    pub(super) async fn restores(
        self: Arc<Self>,
        lease: Lease,
        until: NextOffset,
    ) -> Result<(), StoreError> {
        self.check_poison()?;
        let mut outage = self.outage();
        loop {
            match self.try_restores(&lease, until).await {
                Ok(()) => return Ok(()),
                Err(failure) => outage.pause(failure).await?,
            }
        }
    }

    async fn try_restores(&self, lease: &Lease, until: NextOffset) -> Result<(), Failure> {
        let mut writer = self.writer.lock().await;
        let conn = self.alive(&mut writer, Use::Writing).await?;
        let failed = |error| self.failure("keeping up to where keys are restored", &error);
        let statement = conn.prepared(&self.sql.restores).await.map_err(failed)?;
        let (number, epoch) = (rows::id_sql(lease.id), i64::from(lease.epoch));
        let kept = conn
            .client()
            .execute(&statement, &[&number, &epoch, &until.get()])
            .await;
        if kept.map_err(failed)? == 1 {
            self.known().restores(lease.id, until);
            return Ok(());
        }
        self.refresh(&conn).await?;
        let now = self.kept(lease.id)?;
        fence(&now.partition, lease.epoch).map_err(Failure::lasting)
    }

    /// The partition as it was last read.
    pub(super) fn kept(&self, id: PartitionId) -> Result<Kept, Failure> {
        let kept = self.known().get(id).cloned();
        kept.ok_or(Failure::lasting(StoreError::Misused(NEVER_LEASED)))
    }
}
