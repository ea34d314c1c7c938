//! What of a retention is at fault.

use std::time::Duration;

use super::Builder;
use crate::audit::Finding;

/// Less is no window at all: a commit, its offset and a rebalance take longer.
const KEEP_MIN: Duration = Duration::from_secs(60);
/// Fewer keys would be dropped, or hold everything up, while their own records are in flight.
const ENTRIES_MIN: u64 = 10_000;
const BYTES_MIN: u64 = 1 << 20;

impl Builder {
    /// What of the retention is at fault, for a store that can forget or not.
    pub(super) fn retention_findings(&self, forgets: bool) -> Vec<Finding> {
        let retention = &self.retention;
        let mut findings = Vec::new();
        if !retention.is_unbounded() && !forgets {
            findings.push(Finding::new(
                "retention",
                Some(format!("{retention:?}")),
                "this store does not expire keys by itself",
                "leave it unbounded; a PostgresStore drops what is old in PostgresStore::expire",
            ));
        }
        let mut refuse = |setting: &str, value: String, reason, fix| {
            findings.push(Finding::new(setting, Some(value), reason, fix));
        };
        if let Some(keep) = retention.duration().filter(|keep| *keep < KEEP_MIN) {
            refuse(
                "Retention::for_duration",
                format!("{keep:?}"),
                "what is redelivered after a crash or a rebalance would be handled again",
                "choose a minute at least, and rather longer than the longest outage",
            );
        }
        if let Some(max) = retention.entries_max().filter(|max| *max < ENTRIES_MIN) {
            refuse(
                "Retention::max_entries",
                max.to_string(),
                "so few keys are there while their records are in flight",
                "choose 10000 at least",
            );
        }
        if let Some(max) = retention.bytes_max().filter(|max| *max < BYTES_MIN) {
            refuse(
                "Retention::max_bytes",
                max.to_string(),
                "so few bytes are there while their records are in flight",
                "choose 1048576 at least",
            );
        }
        if !(1..=100).contains(&retention.percent()) {
            refuse(
                "Retention::sudden_percent_max",
                retention.percent().to_string(),
                "it is no share of a partition",
                "choose between 1 and 100",
            );
        }
        findings
    }
}
