//! One record on its way out.

use crate::record::Record;

/// A record to send. Its topic must exist.
///
/// Absent and empty are told apart, as in a [`Record`]: without [`key`](Outgoing::key) the key is
/// null, and without [`value`](Outgoing::value) the record is a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    pub(crate) topic: String,
    pub(crate) partition: Option<i32>,
    pub(crate) timestamp_ms: Option<i64>,
    pub(crate) key: Option<Box<[u8]>>,
    pub(crate) value: Option<Box<[u8]>>,
    pub(crate) headers: Vec<(String, Option<Box<[u8]>>)>,
}

impl Outgoing {
    /// A record for a topic, with nothing in it yet.
    #[must_use]
    pub fn to(topic: impl Into<String>) -> Self {
        Self {
            topic: topic.into(),
            partition: None,
            timestamp_ms: None,
            key: None,
            value: None,
            headers: Vec::new(),
        }
    }

    /// A record with the key, the value, the headers and the [timestamp](Outgoing::timestamp_ms) of
    /// another. The partition is not taken over: the key decides it.
    ///
    /// A header's name that is not UTF-8 is written as Java clients read it, with U+FFFD.
    #[must_use]
    pub fn copy_of(record: &Record<'_>, topic: impl Into<String>) -> Self {
        let header = |(name, value): (&[u8], Option<&[u8]>)| {
            (
                String::from_utf8_lossy(name).into_owned(),
                value.map(Into::into),
            )
        };
        Self {
            topic: topic.into(),
            partition: None,
            timestamp_ms: record.timestamp_ms,
            key: record.key.map(Into::into),
            value: record.value.map(Into::into),
            headers: record.headers.iter().map(header).collect(),
        }
    }

    /// Its key; by default null.
    #[must_use]
    pub fn key(mut self, key: impl Into<Box<[u8]>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Its value; by default null.
    #[must_use]
    pub fn value(mut self, value: impl Into<Box<[u8]>>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// One header more, behind those that it has.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Box<[u8]>>) -> Self {
        self.headers.push((name.into(), Some(value.into())));
        self
    }

    /// Its partition; by default the key decides, as the Java client's partitioner does it.
    #[must_use]
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Its timestamp in milliseconds since 1970; by default the time of sending. librdkafka takes 0
    /// for none, and writes the time of sending for it too.
    #[must_use]
    pub fn timestamp_ms(mut self, timestamp_ms: i64) -> Self {
        self.timestamp_ms = Some(timestamp_ms);
        self
    }

    /// About how much memory it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let part = |bytes: &Option<Box<[u8]>>| bytes.as_ref().map_or(0, |bytes| bytes.len());
        let headers = self.headers.iter();
        let headers: usize = headers
            .map(|(name, value)| {
                size_of::<(String, Option<Box<[u8]>>)>() + name.len() + part(value)
            })
            .sum();
        size_of::<Self>() + self.topic.len() + part(&self.key) + part(&self.value) + headers
    }
}
