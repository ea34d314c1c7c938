//! Marks with times, for keys that are to be forgotten: `SECONDS KEY`, since 1970.

use std::{io::Write, time::Duration};

use idempotent_consumer::{Clock, SystemClock};

/// How long keys are kept, and by which clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ages {
    keep: Duration,
    clock: SystemClock,
}

impl Ages {
    pub(crate) fn new(keep: Duration) -> Self {
        Self {
            keep,
            clock: SystemClock::new(),
        }
    }

    /// Begins a mark that is made now.
    pub(crate) fn begin(&self, mark: &mut Vec<u8>) {
        // Into memory, which takes everything.
        let _ = write!(mark, "{} ", self.now_seconds());
    }

    /// From when the oldest marks are that still count.
    pub(crate) fn not_before(&self) -> i64 {
        let keep = i64::try_from(self.keep.as_secs()).unwrap_or(i64::MAX);
        self.now_seconds().saturating_sub(keep)
    }

    fn now_seconds(&self) -> i64 {
        self.clock.now_ms() / 1000
    }
}

/// The key of a mark; `None` where it is from before that time. What has no time in front is a
/// mark that a user put there, and is kept.
pub(crate) fn key(mark: &[u8], not_before: i64) -> Option<&[u8]> {
    let parts = memchr::memchr(b' ', mark).map(|space| mark.split_at(space));
    let time = parts.and_then(|(time, key)| Some((seconds(time)?, key.get(1..)?)));
    match time {
        None => Some(mark),
        Some((time, _)) if time < not_before => None,
        Some((_, key)) => Some(key),
    }
}

fn seconds(time: &[u8]) -> Option<i64> {
    std::str::from_utf8(time).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_counts_from_its_time_on_and_what_has_none_for_ever() {
        assert_eq!(key(b"100 a b", 100), Some(&b"a b"[..]));
        assert_eq!(key(b"99 a", 100), None);
        assert_eq!(key(b"100 ", 100), Some(&b""[..]));
        // From a clock that was ahead.
        assert_eq!(key(b"99999999999 a", 100), Some(&b"a"[..]));
        for mark in [&b"a b"[..], b"1", b"", b" a", b"99999999999999999999 a"] {
            assert_eq!(key(mark, 100), Some(mark));
        }
    }

    #[test]
    fn a_mark_that_is_made_now_counts() {
        let ages = Ages::new(Duration::from_secs(60));
        let mut mark = Vec::new();
        ages.begin(&mut mark);
        mark.extend_from_slice(b"k");
        assert_eq!(key(&mark, ages.not_before()), Some(&b"k"[..]));
        assert_eq!(key(&mark, ages.not_before() + 62), None);
    }
}
