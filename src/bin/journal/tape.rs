//! A stretch of bytes in the store, from its first one on: appended to, and read back.

use idempotent_consumer::{
    NextOffset, TopicPartition,
    engine::{Engine, Ledger, Look},
    store::{CommitUnit, Store, StoreError},
};

/// The name of a tape.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    topic: &'static str,
    number: i32,
}

impl Place {
    pub(crate) const fn new(topic: &'static str, number: i32) -> Self {
        Self { topic, number }
    }
}

pub(crate) struct Tape {
    ledger: Ledger,
    end: u64,
}

impl Tape {
    pub(crate) fn take(engine: &Engine, place: Place) -> Result<Self, StoreError> {
        let ledger = engine.lease(&TopicPartition::new(place.topic, place.number))?;
        let head = ledger.lease().head;
        Ok(Self {
            end: head.map_or(0, |head| head.next.get().unsigned_abs()),
            ledger,
        })
    }

    /// How many bytes there are, those that are not committed yet included.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Looks keys up and claims the new ones.
    pub(crate) fn look_all<'a>(
        &self,
        keys: impl Iterator<Item = &'a [u8]>,
        looks: &mut Vec<Look>,
    ) -> Result<(), StoreError> {
        // Where a line will lie is known only when it is appended, and decides nothing here.
        let candidates = keys.map(|key| self.ledger.candidate(0, key, None));
        self.ledger.look_all(&candidates.collect::<Vec<_>>(), looks)
    }

    /// Appends `length` bytes under a key. They take effect with the engine's next commit.
    pub(crate) fn append(
        &mut self,
        key: &[u8],
        recorded: Option<&[u8]>,
        length: usize,
    ) -> Result<(), StoreError> {
        if self.end == 0 {
            // A ledger begins at its first offset, a tape at its first byte.
            self.ledger.skip(&self.ledger.candidate(0, b"", None))?;
        }
        // An entry's offset is that of its last byte. The position behind it, which becomes the
        // ledger's head, is then the length of the tape.
        let end = self.end + length as u64;
        let last = i64::try_from(end - 1)
            .map_err(|_| StoreError::Misused("a store holds at most 2^63 bytes of lines"))?;
        let candidate = self.ledger.candidate(last, key, None);
        self.ledger.done(&candidate, recorded.map(Into::into))?;
        self.end = end;
        Ok(())
    }

    /// The record that holds the byte at `position`, `None` at the end. Committed ones only.
    pub(crate) fn record_at(
        &self,
        store: &dyn Store,
        position: u64,
    ) -> Result<Option<Record>, StoreError> {
        let position = i64::try_from(position).ok().and_then(NextOffset::new);
        let Some(position) = position else {
            return Ok(None);
        };
        let unit = store.unit_behind(self.ledger.lease().id, position.into())?;
        Ok(unit.map(|(_, unit)| Record(unit)))
    }

    pub(crate) fn finish(self) -> Result<(), StoreError> {
        self.ledger.finish().map(drop)
    }
}

/// A stretch that was committed at once.
pub(crate) struct Record(CommitUnit);

/// What was appended under one key.
pub(crate) struct Part<'a> {
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) recorded: Option<&'a [u8]>,
}

impl Record {
    pub(crate) fn end(&self) -> u64 {
        self.0.next.get().unsigned_abs()
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let mut start = self.0.previous.get().unsigned_abs();
        self.0.entries.iter().map(move |entry| {
            let end = NextOffset::after(entry.offset).get().unsigned_abs();
            let part = Part {
                start,
                length: end.saturating_sub(start),
                recorded: entry.result.as_deref(),
            };
            start = end;
            part
        })
    }
}
