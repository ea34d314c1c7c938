//! Every metric, in one place. Recorded through the `metrics` facade: nothing happens without a
//! recorder.
//!
//! | name | kind | labels | unit |
//! | --- | --- | --- | --- |
//! | `idempotent_consumer_records_total` | counter | `decision`: the fields of [`Counts`] | records |
//! | `idempotent_consumer_commit_seconds` | histogram | | seconds of one durable commit |
//! | `idempotent_consumer_committed_partitions_total` | counter | | commit records written |
//!
//! [`Counts`]: crate::Counts

use std::time::Duration;

pub(crate) fn decided(decision: &'static str, records: u64) {
    metrics::counter!("idempotent_consumer_records_total", "decision" => decision)
        .increment(records);
}

pub(crate) fn committed(units: usize, took: Duration) {
    metrics::histogram!("idempotent_consumer_commit_seconds").record(took.as_secs_f64());
    metrics::counter!("idempotent_consumer_committed_partitions_total").increment(units as u64);
}
