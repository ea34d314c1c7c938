//! Whether keys are kept for as long as records may come again.

use std::time::Duration;

use tokio::runtime::Handle;

use crate::retention::Retention;
use crate::retry::RetryPolicy;
use crate::source::ClientConfig;
use crate::source::kafka::{Kept, kept};

/// How long the brokers are asked. They need not answer.
const ASK_LIMIT: Duration = Duration::from_secs(5);

/// Warns of what brings records back when their keys have expired, as far as the brokers say.
pub(super) fn check(
    retention: &Retention,
    retry: &RetryPolicy,
    brokers: &ClientConfig,
    topics: &[String],
) {
    let Some(keep) = retention.duration() else {
        return;
    };
    let asked = Handle::current().block_on(kept(brokers, topics, ASK_LIMIT));
    let said = asked.unwrap_or_else(|error| {
        tracing::debug!(%error, "the brokers do not say how long they keep records");
        Kept::default()
    });
    for shortfall in shortfalls(keep, retry, &said) {
        tracing::warn!("the retention is shorter than {shortfall}");
    }
}

/// What is longer than the retention, in words, with both numbers and both settings.
fn shortfalls(keep: Duration, retry: &RetryPolicy, said: &Kept) -> Vec<String> {
    let ours = format!("Retention::for_duration is {keep:?}");
    let mut all = Vec::new();
    for (topic, retention_ms) in &said.topics {
        // Negative is for ever.
        let longer = u64::try_from(*retention_ms).map(Duration::from_millis);
        if longer.is_ok_and(|longer| longer <= keep) {
            continue;
        }
        all.push(format!(
            "topic {topic} keeps records: {ours}, its retention.ms is {retention_ms}. A record that \
             is read again under another store, or sent again so late, is handled again"
        ));
    }
    let minutes = said
        .offsets_minutes
        .and_then(|minutes| u64::try_from(minutes).ok());
    if let Some(minutes) = minutes.filter(|minutes| Duration::from_secs(minutes * 60) > keep) {
        all.push(format!(
            "the group keeps its place: {ours}, offsets.retention.minutes of the brokers is \
             {minutes}. A group that comes back so late may be sent copies whose keys have expired"
        ));
    }
    let retries = retry.longest();
    if retries > keep {
        all.push(format!(
            "one record may be tried: {ours}, the pauses of RetryPolicy add up to {retries:?}. Copies \
             that wait behind it come later than their keys are kept"
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn what_is_longer_than_the_retention_is_told_with_both_numbers_and_settings() {
        let said = Kept {
            topics: vec![
                ("short".to_owned(), 3_600_000),
                ("long".to_owned(), 3_600_001),
                ("endless".to_owned(), -1),
            ],
            offsets_minutes: Some(61),
        };
        let retry = RetryPolicy::exponential(3, HOUR, HOUR);
        let all = shortfalls(HOUR, &retry, &said);
        let named = [
            ["topic long", "retention.ms is 3600001"],
            ["topic endless", "retention.ms is -1"],
            [
                "the group",
                "offsets.retention.minutes of the brokers is 61",
            ],
            ["one record", "RetryPolicy add up to"],
        ];
        assert_eq!(all.len(), named.len(), "{all:?}");
        for (text, named) in all.iter().zip(named) {
            assert!(text.contains("Retention::for_duration is 3600s"), "{text}");
            assert!(named.iter().all(|part| text.contains(part)), "{text}");
        }
        let enough = shortfalls(24 * 365 * HOUR, &RetryPolicy::default(), &Kept::default());
        assert!(enough.is_empty(), "{enough:?}");
    }
}
