//! What of a consumer's choices is at fault.

use super::{Builder, CONCURRENCY_MAX, DURATION_MAX};
use crate::audit;
use crate::dead_letter::is_topic;
use crate::outbox::Outlet;
use crate::pipeline::{Ordering, Restore, UNCOMMITTED_RECORDS_MAX, UNSYNCED_RECORDS_MAX};

impl Builder {
    /// What of the choices about dead letters is at fault.
    fn letter_findings(&self) -> Vec<audit::Finding> {
        let own = self.dead_letter.iter();
        let mut findings: Vec<_> = own
            .flat_map(|letters| letters.findings(&self.config, &self.topics))
            .collect();
        let pattern = self.topics.iter().any(|topic| topic.starts_with('^'));
        let read = |topic: &String| pattern || self.topics.contains(topic);
        for topic in &self.replay_from {
            if !is_topic(topic) || !read(topic) {
                findings.push(audit::Finding::new(
                    "replay_from",
                    Some(topic.clone()),
                    "no such topic is read, and letters from another would not be known as the \
                     records that they were",
                    "name topics that are in `topics` too",
                ));
            }
        }
        findings
    }

    /// What does not go together with transactions, the store's or those that send.
    fn transaction_findings(&self, sends: bool) -> Vec<audit::Finding> {
        let mut findings = Vec::new();
        if self.ordering != Ordering::Partition {
            findings.push(audit::Finding::new(
                "ordering",
                Some(format!("{:?}", self.ordering)),
                "a transaction commits what was done up to one position of each partition, and \
                 nothing above it",
                "leave it at Ordering::Partition; partitions are worked at the same time",
            ));
        }
        if sends && self.restore != Restore::FromSource {
            findings.push(audit::Finding::new(
                "restore",
                Some(format!("{:?}", self.restore)),
                "a crash between a transaction and its marks leaves the store behind the group, \
                 and what was sent must be read for its keys",
                "leave it at Restore::FromSource",
            ));
        }
        findings
    }

    /// What of the choices is at fault.
    pub(super) fn findings(
        &self,
        outlet: Option<&dyn Outlet>,
        transacts: bool,
    ) -> Vec<audit::Finding> {
        let mut findings = audit::consumer(self.config.config_map());
        if outlet.is_some() || transacts {
            findings.extend(self.transaction_findings(outlet.is_some()));
        }
        if let Some(outlet) = outlet {
            findings.extend(outlet.findings(&self.config));
        }
        findings.extend(self.letter_findings());
        let mut refuse = |setting: &str, value: Option<String>, reason, fix| {
            findings.push(audit::Finding::new(setting, value, reason, fix));
        };
        if self.topics.is_empty() {
            refuse(
                "topics",
                None,
                "there is nothing to read",
                "name at least one",
            );
        }
        if self.recipe.is_none() {
            refuse(
                "key",
                None,
                "nothing tells records apart",
                "choose where a record carries its identity, from the module `key`",
            );
        }
        findings.extend(self.limit_findings(outlet.is_some()));
        findings
    }

    /// What of the bounds is at fault.
    fn limit_findings(&self, sends: bool) -> Vec<audit::Finding> {
        let mut findings = Vec::new();
        let mut refuse = |setting: &str, value: Option<String>, reason, fix| {
            findings.push(audit::Finding::new(setting, value, reason, fix));
        };
        let limits = self.limits();
        let (most, fix) = if sends {
            (UNSYNCED_RECORDS_MAX, "choose between 1 and 8000")
        } else {
            (UNCOMMITTED_RECORDS_MAX, "choose between 1 and 1000")
        };
        if !(1..=most).contains(&limits.uncommitted) {
            refuse(
                "uncommitted_records_max",
                Some(limits.uncommitted.to_string()),
                "a crash may repeat so many effects",
                fix,
            );
        }
        if !(limits.uncommitted..=UNSYNCED_RECORDS_MAX).contains(&limits.unsynced) {
            refuse(
                "unsynced_records_max",
                Some(limits.unsynced.to_string()),
                "a power cut may repeat so many effects, and no fewer than a death of the process",
                "choose between uncommitted_records_max and 8000",
            );
        }
        // tokio's own limit of a semaphore is far above what anybody handles at once.
        if self
            .concurrency_max
            .is_some_and(|max| !(1..=CONCURRENCY_MAX).contains(&max))
        {
            refuse(
                "max_concurrency",
                self.concurrency_max.map(|max| max.to_string()),
                "so many records would be handled at once",
                "choose between 1 and 1000000",
            );
        }
        for (setting, limit) in [
            ("commit_within", self.commit_within),
            ("offset_interval", Some(self.offset_interval)),
            ("drain_limit", self.drain_limit),
        ] {
            if let Some(limit) = limit.filter(|limit| *limit > DURATION_MAX) {
                refuse(
                    setting,
                    Some(format!("{limit:?}")),
                    "what waits so long is not meant",
                    "choose an hour at most",
                );
            }
        }
        findings
    }
}
