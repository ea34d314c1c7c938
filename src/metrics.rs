//! Every metric, in one place. Recorded through the `metrics` facade: nothing happens without a
//! recorder.
//!
//! | name | kind | labels | unit |
//! | --- | --- | --- | --- |
//! | `idempotent_consumer_records_total` | counter | `decision`: the fields of [`Counts`] | records |
//! | `idempotent_consumer_commit_seconds` | histogram | | seconds of one durable commit |
//! | `idempotent_consumer_committed_partitions_total` | counter | | commit records written |
//! | `idempotent_consumer_expired_keys_total` | counter | | keys that retention dropped |
//! | `idempotent_consumer_expired_units_total` | counter | | commit records that retention dropped |
//! | `idempotent_consumer_effective_retention_seconds` | gauge | `topic`, `partition` | how far back the keys of a partition reach, by its own clock |
//! | `idempotent_consumer_expiry_held_partitions` | gauge | | partitions of which nothing expires, since their clock has jumped |
//! | `idempotent_consumer_paused` | gauge | | 1 while no new record is handled because the store is full |
//!
//! [`Counts`]: crate::Counts

use std::time::Duration;

use crate::store::{Expired, Retained};

pub(crate) fn decided(decision: &'static str, records: u64) {
    metrics::counter!("idempotent_consumer_records_total", "decision" => decision)
        .increment(records);
}

pub(crate) fn committed(units: usize, took: Duration) {
    metrics::histogram!("idempotent_consumer_commit_seconds").record(took.as_secs_f64());
    metrics::counter!("idempotent_consumer_committed_partitions_total").increment(units as u64);
}

pub(crate) fn expired(expired: Expired, held: usize) {
    metrics::counter!("idempotent_consumer_expired_keys_total").increment(expired.keys);
    metrics::counter!("idempotent_consumer_expired_units_total").increment(expired.units);
    // A handful at most.
    let held = f64::from(u32::try_from(held).unwrap_or(u32::MAX));
    metrics::gauge!("idempotent_consumer_expiry_held_partitions").set(held);
}

pub(crate) fn effective_retention(of: &Retained) {
    let reach = of.clock_ms.saturating_sub(of.oldest_ms).max(0);
    let reach = Duration::from_millis(reach.unsigned_abs());
    metrics::gauge!(
        "idempotent_consumer_effective_retention_seconds",
        "topic" => of.partition.topic().to_owned(),
        "partition" => of.partition.partition().to_string(),
    )
    .set(reach.as_secs_f64());
}

pub(crate) fn paused(paused: bool) {
    metrics::gauge!("idempotent_consumer_paused").set(if paused { 1.0 } else { 0.0 });
}
