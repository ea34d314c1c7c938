//! Dead letters without a consumer.

use std::time::Duration;

use rdkafka::ClientConfig;

use super::broker::Produced;
use crate::dead_letter::{Cause, DeadLetter, DeadLetterError, Letters as Written, Reason};
use crate::record::{Coordinates, HeaderList, Headers, Record};

const OPEN_LIMIT: Duration = Duration::from_secs(30);

/// Writes dead letters as a consumer does, for tests of what reads them.
pub struct Letters(Written);

/// A record that its handler failed on at every attempt.
#[derive(Clone, Debug)]
pub struct Failed<'a> {
    /// Where it was read.
    pub at: Coordinates,
    /// The record; its own `partition` is not looked at.
    pub record: Produced<'a>,
    /// Its timestamp in milliseconds since 1970, `None` where it carries none.
    pub timestamp_ms: Option<i64>,
    /// The error's text.
    pub error: &'a str,
    /// How often it was tried.
    pub attempts: u32,
}

impl Letters {
    /// Makes the producer and looks for the topic. Blocks. `consumer` is the configuration of the
    /// consumer that the letters would be from.
    ///
    /// # Errors
    /// [`DeadLetterError`], where the settings are refused, the producer cannot be made, or the
    /// topic is not found within 30 seconds.
    pub fn open(
        dead_letter: &DeadLetter,
        consumer: &ClientConfig,
    ) -> Result<Self, DeadLetterError> {
        let never = || false;
        let opened = Written::open(dead_letter, consumer, OPEN_LIMIT, &never)?;
        opened.map(Self).ok_or_else(|| DeadLetterError::Producer {
            topic: dead_letter.topic().to_owned(),
            cause: "given up".into(),
        })
    }

    /// Writes one letter and waits until the brokers have confirmed it.
    ///
    /// # Errors
    /// [`DeadLetterError`], where they have not.
    pub async fn write(&self, failed: &Failed<'_>) -> Result<(), DeadLetterError> {
        let list = List(failed.record.headers);
        let record = Record {
            topic: failed.at.topic_partition().topic(),
            partition: failed.at.topic_partition().partition(),
            offset: failed.at.offset(),
            timestamp_ms: failed.timestamp_ms,
            key: failed.record.key,
            value: failed.record.value,
            headers: Headers::new(&list),
        };
        let cause = Cause {
            reason: Reason::AttemptsUsedUp,
            error: failed.error,
            attempts: failed.attempts,
        };
        self.0.write(&record, &cause).await
    }

    /// Waits for letters that nobody waits for any more.
    ///
    /// # Errors
    /// [`DeadLetterError::Unconfirmed`], where some are left after `limit`.
    pub fn close(self, limit: Duration) -> Result<(), DeadLetterError> {
        self.0.close(limit)
    }
}

struct List<'a>(&'a [(&'a str, Option<&'a [u8]>)]);

impl HeaderList for List<'_> {
    fn get(&self, index: usize) -> Option<(&[u8], Option<&[u8]>)> {
        let (name, value) = self.0.get(index)?;
        Some((name.as_bytes(), *value))
    }
}
