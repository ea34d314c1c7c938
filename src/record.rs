//! Records and where they stand in Kafka. No rdkafka type passes this point.

use std::fmt;
use std::sync::Arc;

/// One partition of one topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicPartition {
    topic: Arc<str>,
    partition: i32,
}

impl TopicPartition {
    /// Names a partition.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self {
            topic: topic.into(),
            partition,
        }
    }

    /// The topic's name.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The partition's number.
    #[must_use]
    pub fn partition(&self) -> i32 {
        self.partition
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.topic, self.partition)
    }
}

/// The offset of the next record to read: what Kafka calls a committed offset.
///
/// The one type in which positions travel through this crate. A record's own offset becomes a
/// position only through [`NextOffset::after`], so that nothing is ever committed one too low
/// (a repeat at each restart) or one too high (a loss).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NextOffset(i64);

impl NextOffset {
    /// The start of a partition that never lost a record.
    pub const ZERO: Self = Self(0);

    /// A position as Kafka reports it: already the next offset to read.
    ///
    /// Negative numbers are Kafka's special values, not positions, and give `None`.
    #[must_use]
    pub fn new(next: i64) -> Option<Self> {
        (next >= 0).then_some(Self(next))
    }

    /// The position behind the record at `offset`.
    #[must_use]
    pub fn after(offset: i64) -> Self {
        Self(offset.max(-1).saturating_add(1))
    }

    /// The number that goes to Kafka.
    #[must_use]
    pub fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for NextOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A record's headers, in the order of the record. Names may repeat; a value may be absent.
///
/// Names are compared as bytes: Kafka does not promise that they are text.
#[derive(Clone, Copy)]
pub struct Headers<'a>(&'a dyn HeaderList);

impl<'a> Headers<'a> {
    pub(crate) fn new(list: &'a dyn HeaderList) -> Self {
        Self(list)
    }

    /// The headers from first to last: name, and the value or `None` where it is null.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> {
        (0..).map_while(move |index| self.0.get(index))
    }
}

impl fmt::Debug for Headers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        f.debug_list()
            .entries(
                self.iter()
                    .map(|(name, value)| (text(name), value.map(text))),
            )
            .finish()
    }
}

/// Where headers are kept: librdkafka's memory, or a plain list in tests.
pub(crate) trait HeaderList: Send + Sync {
    /// The header at `index`, `None` behind the last.
    fn get(&self, index: usize) -> Option<(&[u8], Option<&[u8]>)>;
}

/// Headers held as a list.
#[cfg(test)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnedHeaders(pub(crate) Vec<(Vec<u8>, Option<Vec<u8>>)>);

#[cfg(test)]
impl HeaderList for OwnedHeaders {
    fn get(&self, index: usize) -> Option<(&[u8], Option<&[u8]>)> {
        self.0
            .get(index)
            .map(|(name, value)| (name.as_slice(), value.as_deref()))
    }
}

/// One record, borrowed from the batch that it came in.
///
/// Absent and empty are told apart: a null key is `None`, a key of no bytes is `Some(b"")`; the
/// same for values, where `None` is a tombstone.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) timestamp_ms: Option<i64>,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) headers: Headers<'a>,
}

impl<'a> Record<'a> {
    /// The topic that the record was read from.
    #[must_use]
    pub fn topic(&self) -> &'a str {
        self.topic
    }

    /// The partition that the record was read from.
    #[must_use]
    pub fn partition(&self) -> i32 {
        self.partition
    }

    /// The record's own offset.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// The record's timestamp in milliseconds since 1970, `None` where it carries none.
    ///
    /// It is the producer's or the broker's, as the topic's `message.timestamp.type` says.
    #[must_use]
    pub fn timestamp_ms(&self) -> Option<i64> {
        self.timestamp_ms
    }

    /// The record key, `None` where it is null.
    #[must_use]
    pub fn key(&self) -> Option<&'a [u8]> {
        self.key
    }

    /// The record value, `None` where it is null (a tombstone).
    #[must_use]
    pub fn value(&self) -> Option<&'a [u8]> {
        self.value
    }

    /// The record's headers.
    #[must_use]
    pub fn headers(&self) -> Headers<'a> {
        self.headers
    }

    /// The record's place, to be kept longer than the record.
    #[must_use]
    pub fn coordinates(&self) -> Coordinates {
        Coordinates {
            partition: TopicPartition::new(self.topic, self.partition),
            offset: self.offset,
        }
    }
}

/// Topic, partition and offset of one record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Coordinates {
    partition: TopicPartition,
    offset: i64,
}

impl Coordinates {
    /// Names the record at `offset` of a partition.
    #[must_use]
    pub fn new(partition: TopicPartition, offset: i64) -> Self {
        Self { partition, offset }
    }

    /// The partition.
    #[must_use]
    pub fn topic_partition(&self) -> &TopicPartition {
        &self.partition
    }

    /// The record's own offset.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.offset
    }
}

impl fmt::Display for Coordinates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.partition, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_always_one_behind_its_record() {
        assert_eq!(NextOffset::after(0).get(), 1);
        assert_eq!(NextOffset::after(41), NextOffset::new(42).unwrap());
        assert_eq!(NextOffset::after(i64::MAX).get(), i64::MAX);
    }

    #[test]
    fn kafkas_special_offsets_are_no_positions() {
        for special in [-1, -2, -1000, -1001] {
            assert_eq!(NextOffset::new(special), None);
        }
    }

    #[test]
    fn headers_keep_repeats_and_nulls() {
        let list = OwnedHeaders(vec![
            (b"id".to_vec(), Some(b"a".to_vec())),
            (b"id".to_vec(), None),
            (b"".to_vec(), Some(b"".to_vec())),
        ]);
        let seen: Vec<_> = Headers::new(&list).iter().collect();
        assert_eq!(
            seen,
            [
                (&b"id"[..], Some(&b"a"[..])),
                (b"id", None),
                (b"", Some(b""))
            ]
        );
    }
}
