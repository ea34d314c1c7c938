//! Where a record that comes from a dead-letter topic was read first.

use super::names::{ORIGINAL_OFFSET, ORIGINAL_PARTITION, ORIGINAL_TOPIC, is_topic};
use crate::record::{Coordinates, Record, TopicPartition};

/// The place of a record before it became a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
}

impl<'a> Origin<'a> {
    pub(crate) fn place(self) -> Coordinates {
        Coordinates::new(TopicPartition::new(self.topic, self.partition), self.offset)
    }

    /// The record as it was before it became a letter, as far as its identity goes.
    pub(crate) fn of(self, record: Record<'a>) -> Record<'a> {
        Record {
            topic: self.topic,
            partition: self.partition,
            offset: self.offset,
            ..record
        }
    }
}

/// Reads the place back from a letter's headers; `None` where they are missing or malformed.
///
/// Of a repeated header the first counts: whoever adds coordinates instead of keeping them, as
/// Spring Kafka does by default, adds them behind. Anybody who may write to a topic can write such
/// headers, so they are worth what the topic's access rights are worth.
pub(crate) fn origin<'a>(record: &Record<'a>) -> Option<Origin<'a>> {
    let names = [ORIGINAL_TOPIC, ORIGINAL_PARTITION, ORIGINAL_OFFSET];
    let mut first: [Option<Option<&'a [u8]>>; 3] = [None; 3];
    for (name, value) in record.headers().iter() {
        let slots = names.iter().zip(&mut first);
        for (_, slot) in slots.filter(|(wanted, _)| wanted.as_bytes() == name) {
            slot.get_or_insert(value);
        }
    }
    let [topic, partition, offset] = first.map(Option::flatten);
    let topic = std::str::from_utf8(topic?).ok()?;
    let partition = i32::from_be_bytes(partition?.try_into().ok()?);
    let offset = i64::from_be_bytes(offset?.try_into().ok()?);
    (is_topic(topic) && partition >= 0 && offset >= 0).then_some(Origin {
        topic,
        partition,
        offset,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Headers, OwnedHeaders};

    type Given<'a> = (&'a str, Option<&'a [u8]>);

    fn read(headers: &[Given<'_>]) -> Option<(String, i32, i64)> {
        let owned = |(name, value): &Given<'_>| {
            let value = value.map(<[u8]>::to_vec);
            (name.as_bytes().to_vec(), value)
        };
        let list = OwnedHeaders(headers.iter().map(owned).collect());
        let record = Record {
            topic: "orders.DLT",
            partition: 0,
            offset: 0,
            timestamp_ms: None,
            key: None,
            value: None,
            headers: Headers::new(&list),
        };
        origin(&record).map(|found| (found.topic.to_owned(), found.partition, found.offset))
    }

    const TOPIC: Given<'_> = (ORIGINAL_TOPIC, Some(b"orders"));
    const PARTITION: Given<'_> = (ORIGINAL_PARTITION, Some(&[0, 0, 1, 2]));
    const OFFSET: Given<'_> = (ORIGINAL_OFFSET, Some(&[0, 0, 0, 0, 0, 0, 3, 4]));

    #[test]
    fn the_place_is_read_in_any_order_of_headers() {
        let expected = Some(("orders".to_owned(), 0x102, 0x304));
        assert_eq!(read(&[TOPIC, PARTITION, OFFSET]), expected);
        let other = ("id", Some(&b"orders"[..]));
        assert_eq!(read(&[OFFSET, other, PARTITION, other, TOPIC]), expected);
    }

    #[test]
    fn the_first_place_counts_where_later_stations_added_theirs() {
        let second = [
            (ORIGINAL_TOPIC, Some(&b"orders-retry"[..])),
            (ORIGINAL_PARTITION, Some(&[0, 0, 0, 9][..])),
            (ORIGINAL_OFFSET, None),
        ];
        let headers: Vec<_> = [TOPIC, PARTITION, OFFSET]
            .into_iter()
            .chain(second)
            .collect();
        assert_eq!(read(&headers), Some(("orders".to_owned(), 0x102, 0x304)));
    }

    #[test]
    fn a_place_that_is_not_whole_is_no_place() {
        assert_eq!(read(&[]), None);
        let whole = [TOPIC, PARTITION, OFFSET];
        for missing in 0..whole.len() {
            let mut headers = whole.to_vec();
            headers.remove(missing);
            assert_eq!(read(&headers), None, "{headers:?}");
        }
        let long = "t".repeat(250);
        let malformed: &[Given<'_>] = &[
            (ORIGINAL_TOPIC, None),
            (ORIGINAL_TOPIC, Some(b"")),
            (ORIGINAL_TOPIC, Some(b"..")),
            (ORIGINAL_TOPIC, Some(b"or/ders")),
            (ORIGINAL_TOPIC, Some(b"\xff")),
            (ORIGINAL_TOPIC, Some(long.as_bytes())),
            (ORIGINAL_PARTITION, None),
            (ORIGINAL_PARTITION, Some(b"")),
            (ORIGINAL_PARTITION, Some(b"7")),
            (ORIGINAL_PARTITION, Some(&[0; 3])),
            (ORIGINAL_PARTITION, Some(&[0; 5])),
            (ORIGINAL_PARTITION, Some(&[0xff; 4])),
            (ORIGINAL_OFFSET, None),
            (ORIGINAL_OFFSET, Some(b"12")),
            (ORIGINAL_OFFSET, Some(&[0; 4])),
            (ORIGINAL_OFFSET, Some(&[0; 9])),
            (ORIGINAL_OFFSET, Some(&[0x80, 0, 0, 0, 0, 0, 0, 0])),
        ];
        for bad in malformed {
            // In front of a good one of its name: the first counts, and it is no place.
            let headers: Vec<_> = [*bad].into_iter().chain(whole).collect();
            assert_eq!(read(&headers), None, "{bad:?}");
        }
    }
}
