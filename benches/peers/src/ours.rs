//! This crate's consumer as a contender.

use std::sync::Arc;
use std::time::Duration;

use idempotent_consumer::store::{Durability, SledStore};
use idempotent_consumer::{
    ClientConfig, Delivery, Effects, IdempotentConsumer, Outbox, Outgoing, Transactional, key,
};
use tokio_util::sync::CancellationToken;

use crate::Outcome;
use crate::job::{Job, Progress, SESSION_TIMEOUT_MS};
use crate::race::wait_stop;

/// How often the group is told of the position. The contest ends when it has been told of the last
/// one: with the default of 1 s, that would be what is measured.
const OFFSET_INTERVAL: Duration = Duration::from_millis(100);

/// Consumes with the store in sled, every mark durable before its offset is committed.
///
/// # Errors
///
/// The consumer stops by itself.
pub async fn consume(job: &Job) -> Outcome<()> {
    let progress = Arc::new(Progress::of(job)?);
    let consumer = IdempotentConsumer::builder(config(job))
        .topics([job.topic.as_str()])
        .key(key::record_key())
        .offset_interval(OFFSET_INTERVAL)
        .build(store(job)?)?;
    let handler = async move |record: &Delivery<'_>, _: &mut Effects| {
        progress.handle(number(record)?)?;
        Ok(())
    };
    consumer.run(handler, until_stopped()).await?;
    Ok(())
}

/// The same, and each record is forwarded to another topic in the Kafka transaction that commits
/// the offsets; with the given bound, where there is one, on what a transaction may hold.
///
/// # Errors
///
/// The consumer stops by itself.
pub async fn forward(job: &Job, uncommitted_records_max: Option<usize>) -> Outcome<()> {
    let progress = Arc::new(Progress::of(job)?);
    let mut builder = IdempotentConsumer::builder(config(job))
        .topics([job.topic.as_str()])
        .key(key::record_key());
    if let Some(records) = uncommitted_records_max {
        builder = builder.uncommitted_records_max(records);
    }
    let consumer = builder.build(Transactional::over(store(job)?))?;
    let to = job.to.clone();
    let handler = async move |record: &Delivery<'_>, outbox: &mut Outbox| {
        outbox.send(Outgoing::copy_of(record, to.as_str()));
        progress.handle(number(record)?)?;
        Ok(())
    };
    consumer.run(handler, until_stopped()).await?;
    Ok(())
}

fn config(job: &Job) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &job.bootstrap)
        .set("group.id", &job.group)
        .set("auto.offset.reset", "earliest")
        .set("session.timeout.ms", SESSION_TIMEOUT_MS);
    config
}

fn store(job: &Job) -> Outcome<SledStore> {
    let options = SledStore::options().durability(Durability::Power);
    Ok(options.open(job.directory.join("store"))?)
}

/// The topics have one partition, filled once: a record's offset is its number.
fn number(record: &Delivery<'_>) -> Result<u64, std::num::TryFromIntError> {
    u64::try_from(record.offset())
}

fn until_stopped() -> CancellationToken {
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    std::thread::spawn(move || {
        wait_stop();
        stopped.cancel();
    });
    stop
}
