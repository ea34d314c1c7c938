//! Forgetting on purpose: what was done counts as not done, so that a corrected handler gets it.

mod plan;

use std::fmt;
use std::ops::Range;
use std::rc::Rc;

pub(super) use self::plan::Plan;
use super::{Gaps, Owner};
use crate::key::{Fingerprint, Fingerprinter, HashKey, Identity, Scope};
use crate::record::{NextOffset, TopicPartition};

/// What a store is to forget.
///
/// Every record that took effect under what is named is handled once more at the next start, in
/// the order of its partition, whatever the group has committed. Records that were skipped as
/// copies of it are not: they stay skipped.
///
/// The [token](crate::Delivery::token) of a record is the same as it was. A receiver that
/// recognises it will answer as it did the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forget {
    topic: String,
    partition: Option<i32>,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Key(Vec<u8>),
    CloudEvent([Vec<u8>; 2]),
    Offsets(Range<i64>),
    All,
}

impl Forget {
    /// One key of a topic, by the exact bytes that the store's recipe finds in a record.
    #[must_use]
    pub fn key(topic: impl Into<String>, key: impl Into<Vec<u8>>) -> Self {
        Self::new(topic.into(), None, What::Key(key.into()))
    }

    /// One key of a topic whose recipe is [`cloud_events`](crate::key::cloud_events).
    #[must_use]
    pub fn cloud_event(
        topic: impl Into<String>,
        source: impl Into<Vec<u8>>,
        id: impl Into<Vec<u8>>,
    ) -> Self {
        let parts = [source.into(), id.into()];
        Self::new(topic.into(), None, What::CloudEvent(parts))
    }

    /// The records of one partition from an offset up to another, the last one not among them.
    #[must_use]
    pub fn offsets(partition: &TopicPartition, offsets: Range<i64>) -> Self {
        let topic = partition.topic().to_owned();
        Self::new(topic, Some(partition.partition()), What::Offsets(offsets))
    }

    /// All that the store knows of one partition.
    #[must_use]
    pub fn partition(partition: &TopicPartition) -> Self {
        let topic = partition.topic().to_owned();
        Self::new(topic, Some(partition.partition()), What::All)
    }

    /// All that the store knows of a topic.
    #[must_use]
    pub fn topic(topic: impl Into<String>) -> Self {
        Self::new(topic.into(), None, What::All)
    }

    /// Limits a key to one partition, in a store with [`Scope::Partition`].
    #[must_use]
    pub fn in_partition(self, partition: i32) -> Self {
        let partition = Some(partition);
        Self { partition, ..self }
    }

    fn new(topic: String, partition: Option<i32>, what: What) -> Self {
        Self {
            topic,
            partition,
            what,
        }
    }

    /// Whether the store's keys can be named in this way, and if not, how they can.
    fn check(&self, owner: &Owner) -> Result<(), String> {
        let recipe = owner.recipe.as_str();
        let fits = match self.what {
            What::Key(_) => !["cloud-events", "coordinates"].contains(&recipe),
            What::CloudEvent(_) => recipe == "cloud-events",
            What::Offsets(_) | What::All => true,
        };
        let is_key = matches!(self.what, What::Key(_) | What::CloudEvent(_));
        if !fits {
            let way = match recipe {
                "cloud-events" => "a source and an id",
                "coordinates" => "a partition and offsets",
                _ => "its bytes",
            };
            return Err(format!(
                "its key recipe is {recipe:?}, so a key is named by {way}"
            ));
        }
        if is_key && self.partition.is_some() && owner.scope != Scope::Partition.name() {
            return Err(format!(
                "its keys hold for a whole topic (scope {:?}): leave out the partition",
                owner.scope
            ));
        }
        match &self.what {
            What::Offsets(offsets) if offsets.is_empty() || offsets.start < 0 => Err(format!(
                "from {} up to {} is no range of offsets",
                offsets.start, offsets.end
            )),
            _ => Ok(()),
        }
    }

    /// What the key that is named is known by, `None` where offsets are.
    fn fingerprints<'a>(
        &self,
        owner: &Owner,
        hash_key: &HashKey,
        partitions: impl Iterator<Item = &'a TopicPartition>,
    ) -> Option<Rc<[Fingerprint]>> {
        let identity = match &self.what {
            What::Key(key) => Identity::Bytes(key.into()),
            What::CloudEvent([source, id]) => Identity::Parts([source.into(), id.into()]),
            What::Offsets(_) | What::All => return None,
        };
        let scope = if owner.scope == Scope::Partition.name() {
            Scope::Partition
        } else {
            Scope::Topic
        };
        let mut keys: Vec<_> = partitions
            .map(|name| Fingerprinter::new(hash_key, &owner.group, scope, name))
            .map(|hasher| hasher.fingerprint(&identity))
            .collect();
        // The same for each partition where keys hold for the topic.
        keys.dedup();
        Some(keys.into())
    }

    /// The offsets that are named, of those that a store knows.
    fn offsets_of(&self, known: Range<i64>) -> Range<i64> {
        match &self.what {
            What::Offsets(named) => named.start.max(known.start)..named.end.min(known.end),
            _ => known,
        }
    }

    fn names(&self, partition: &TopicPartition) -> bool {
        let number = self.partition.unwrap_or(partition.partition());
        self.topic == partition.topic() && number == partition.partition()
    }
}

impl fmt::Display for Forget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Key(key) => write!(f, "key \"{}\" of ", key.escape_ascii())?,
            What::CloudEvent([source, id]) => {
                let (source, id) = (source.escape_ascii(), id.escape_ascii());
                write!(f, "event \"{id}\" from \"{source}\" of ")?;
            }
            What::Offsets(offsets) => write!(f, "offsets {}..{} of ", offsets.start, offsets.end)?,
            What::All => f.write_str("everything of ")?,
        }
        match self.partition {
            Some(partition) => write!(f, "{}[{partition}]", self.topic),
            None => write!(f, "topic {}", self.topic),
        }
    }
}

/// What of one partition was forgotten, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reopened {
    /// The partition.
    pub partition: TopicPartition,
    /// How many keys that had been done there are forgotten.
    pub keys: u64,
    /// The offsets that are open again. Not every one need name a record.
    pub offsets: Gaps,
    /// Where reading begins at the next start, or below it where the group stands lower.
    pub position: NextOffset,
}

/// What was forgotten, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// The partitions that have something of it, in the order in which the store knows them.
    pub partitions: Vec<Reopened>,
}

impl Forgotten {
    /// How many keys in all.
    #[must_use]
    pub fn keys(&self) -> u64 {
        self.partitions.iter().map(|one| one.keys).sum()
    }
}
