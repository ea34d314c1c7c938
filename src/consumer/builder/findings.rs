//! What of a consumer's choices is at fault.

use super::{Builder, CONCURRENCY_MAX, DURATION_MAX};
use crate::audit;
use crate::dead_letter::is_topic;
use crate::outbox::Outlet;
use crate::pipeline::{Ordering, Restore, UNCOMMITTED_RECORDS_MAX};

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
                findings.push(audit::Finding {
                    setting: "replay_from".to_owned(),
                    value: Some(topic.clone()),
                    reason: "no such topic is read, and letters from another would not be known as \
                             the records that they were",
                    fix: "name topics that are in `topics` too",
                });
            }
        }
        findings
    }

    /// What does not go together with sending in transactions.
    fn sending_findings(&self) -> Vec<audit::Finding> {
        let mut findings = Vec::new();
        if self.ordering != Ordering::Partition {
            findings.push(audit::Finding {
                setting: "ordering".to_owned(),
                value: Some(format!("{:?}", self.ordering)),
                reason: "a transaction commits one position for each partition: what is done above \
                         it would be sent again after a crash",
                fix: "leave it at Ordering::Partition; partitions are worked at the same time",
            });
        }
        if self.restore != Restore::FromSource {
            findings.push(audit::Finding {
                setting: "restore".to_owned(),
                value: Some(format!("{:?}", self.restore)),
                reason: "a crash between a transaction and its marks leaves the store behind the \
                         group, and what was sent must be read for its keys",
                fix: "leave it at Restore::FromSource",
            });
        }
        findings
    }

    /// What of the choices is at fault.
    pub(super) fn findings(&self, outlet: Option<&dyn Outlet>) -> Vec<audit::Finding> {
        let mut findings = audit::consumer(self.config.config_map());
        if let Some(outlet) = outlet {
            findings.extend(self.sending_findings());
            findings.extend(outlet.findings(&self.config));
        }
        findings.extend(self.letter_findings());
        let mut refuse = |setting: &str, value: Option<String>, reason, fix| {
            findings.push(audit::Finding {
                setting: setting.to_owned(),
                value,
                reason,
                fix,
            });
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
        if !(1..=UNCOMMITTED_RECORDS_MAX).contains(&self.uncommitted_records_max) {
            refuse(
                "uncommitted_records_max",
                Some(self.uncommitted_records_max.to_string()),
                "a crash may repeat so many effects",
                "choose between 1 and 1000",
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
