//! How much of letters may be in flight.

use super::letter::Header;
use crate::record::Record;

/// Below librdkafka's own limits of 1 GiB and 100,000 letters, beyond which it would refuse one
/// instead of letting it wait.
pub(super) const IN_FLIGHT_KIB_MAX: u32 = 64 << 10;

/// What a letter takes of it: at least one, and never more than there is, or it would wait for ever.
pub(super) fn size_kib(record: &Record<'_>, headers: &[Header<'_>]) -> u32 {
    let len = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
    let listed: usize = headers
        .iter()
        .map(|(name, value)| name.len() + len(value.as_deref()))
        .sum();
    let bytes = listed + len(record.key()) + len(record.value());
    let kib = u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX);
    kib.min(IN_FLIGHT_KIB_MAX)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::record::{Headers, OwnedHeaders};

    #[test]
    fn a_letter_counts_with_all_its_bytes_and_finds_room_whatever_its_size() {
        let none = OwnedHeaders::default();
        let record = |value| Record {
            topic: "orders",
            partition: 0,
            offset: 0,
            timestamp_ms: None,
            key: Some(b"k"),
            value,
            headers: Headers::new(&none),
        };
        assert_eq!(size_kib(&record(None), &[]), 1);
        let mib = vec![0; 1 << 20];
        let header: Header<'_> = (Cow::Borrowed("name"), Some(Cow::Borrowed(&mib)));
        assert_eq!(size_kib(&record(Some(&mib)), &[header]), 2049);
        let huge = vec![0; 100 << 20];
        assert_eq!(size_kib(&record(Some(&huge)), &[]), IN_FLIGHT_KIB_MAX);
    }
}
