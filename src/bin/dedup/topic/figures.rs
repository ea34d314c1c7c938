//! The figures, in Prometheus' text.
//!
//! | name | kind | unit |
//! | --- | --- | --- |
//! | `dedup_topic_assigned_partitions` | gauge | partitions that this instance has now |
//! | `dedup_topic_ready` | gauge | 1 where `/readyz` says yes, else 0 |
//!
//! Beside them are those of the library, see [`idempotent_consumer::metrics`].

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use super::health::Health;

/// Upper bounds of a commit's time, in seconds: from a fast disk alone to a transaction's time-out.
const COMMIT_SECONDS: [f64; 10] = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 60.0];

pub(super) struct Figures {
    handle: PrometheusHandle,
}

impl Figures {
    /// Begins to count.
    ///
    /// # Errors
    /// Where somebody counts already.
    pub(super) fn begin() -> Result<Self, String> {
        let commits = Matcher::Full("idempotent_consumer_commit_seconds".to_owned());
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(commits, &COMMIT_SECONDS)
            .map_err(|error| error.to_string())?;
        let handle = builder
            .install_recorder()
            .map_err(|error| error.to_string())?;
        Ok(Self { handle })
    }

    /// All of them as of now.
    #[expect(
        clippy::cast_precision_loss,
        reason = "no group has so many partitions"
    )]
    pub(super) fn text(&self, health: &Health) -> String {
        metrics::gauge!("dedup_topic_assigned_partitions").set(health.partitions() as f64);
        let ready = if health.unready().is_none() { 1.0 } else { 0.0 };
        metrics::gauge!("dedup_topic_ready").set(ready);
        self.handle.render()
    }

    /// Keeps the samples of a histogram that nobody asks for from piling up.
    pub(super) fn keep_up(&self) {
        self.handle.run_upkeep();
    }
}
