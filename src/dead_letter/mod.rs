//! Where a record goes that cannot be handled: a topic of its own, with all that is known about it.

mod cause;
mod error;
mod kafka;
mod kafka_errors;
mod letter;
mod names;
mod origin;
mod room;
mod settings;
#[cfg(test)]
mod tests;

use std::pin::Pin;

use crate::record::Record;
use crate::source::ClientConfig;

pub(crate) use self::cause::{Cause, Reason};
pub use self::error::DeadLetterError;
pub(crate) use self::kafka::Letters;
pub(crate) use self::names::is_topic;
pub(crate) use self::origin::origin;
pub(crate) use self::settings::{completed, reached_as};

/// Where lanes write their letters.
pub(crate) trait Letterbox: Send + Sync {
    /// Writes the letter for a record; `Ok` says that it will not be lost.
    fn write<'a>(&'a self, record: &'a Record<'a>, cause: &'a Cause<'a>) -> Written<'a>;

    /// Whether a topic of the consumer's own cluster is the one that letters go to.
    fn is_at(&self, topic: &str) -> bool;
}

/// A letter on its way.
pub(crate) type Written<'a> =
    Pin<Box<dyn Future<Output = Result<(), DeadLetterError>> + Send + 'a>>;

impl Letterbox for Letters {
    fn write<'a>(&'a self, record: &'a Record<'a>, cause: &'a Cause<'a>) -> Written<'a> {
        Box::pin(Letters::write(self, record, cause))
    }

    fn is_at(&self, topic: &str) -> bool {
        Letters::is_at(self, topic)
    }
}

/// A topic for records that cannot be handled, so that those behind them can be.
///
/// A letter is confirmed by the brokers before its record is marked and its offset committed. If it
/// cannot be written, the consumer stops and nothing has moved. A crash between the confirmation
/// and the mark writes a second letter at the next start, and so may a time-out; none is lost.
///
/// # The letter
///
/// Key and value have the bytes of the record (null stays null, empty stays empty). Its timestamp is
/// the time of writing; the record's is in a header. Headers come in the record's order, repeated
/// names and null values included; a name that is not UTF-8 is written as Java clients read it, with
/// U+FFFD. Behind them come those by which users of Spring Kafka know a dead letter:
///
/// | header | value |
/// | --- | --- |
/// | `kafka_dlt-original-topic` | text |
/// | `kafka_dlt-original-partition` | 4 bytes, big-endian |
/// | `kafka_dlt-original-offset` | 8 bytes, big-endian |
/// | `kafka_dlt-original-timestamp` | 8 bytes, big-endian: ms since 1970, -1 for none |
/// | `kafka_dlt-original-consumer-group` | text |
/// | `kafka_dlt-exception-fqcn` | why: one of the names below |
/// | `kafka_dlt-exception-message` | the error's text, its first 8 KiB |
/// | `kafka_deliveryAttempt` | 4 bytes, big-endian: how often it was tried |
///
/// The reasons are `idempotent_consumer::HandlerError::Reject`,
/// `idempotent_consumer::Error::Handler` (attempts used up), `idempotent_consumer::Error::MissingKey`
/// and `idempotent_consumer::Error::Mismatch`.
///
/// `kafka_dlt-exception-cause-fqcn` is not written: an error of Rust's does not tell its type.
///
/// These names are taken. A record that comes from a dead-letter topic keeps its first
/// `kafka_dlt-original-*` headers as they are, and gets no more of them; where they do not name a
/// topic, a partition and an offset they are replaced. What they said about an earlier failure is
/// replaced by this one.
///
/// # The topic
///
/// It must exist: it is asked for at the start and never created from here. It may have any number
/// of partitions; a letter goes where the Java client's partitioner (`murmur2_random`) puts its key,
/// which is not always the partition of the same number, and without a key to any. Letters of one
/// key keep their order.
///
/// Give it a retention that leaves time to look at letters: it counts from when they were written,
/// however old their records are. With `cleanup.policy=compact` a later letter of a key removes the
/// earlier one, and one without a key is refused.
///
/// # Trying letters again
///
/// A consumer of the letters' topic that has the same group and store, and names the topic in
/// [`replay_from`](crate::Builder::replay_from), or whoever sends the record to its first topic once
/// more. A letter answers for nothing, so both are tried, and whichever succeeds first answers for
/// the other.
///
/// Where the store was [restored](crate::Restore::FromSource), a record that another store has as a
/// dead letter was read from the topic like one that took effect, and counts as done. Its letter is
/// tried all the same, [in doubt](crate::Delivery::in_doubt). The record sent once more is passed
/// over, until its key or its offset is forgotten: `dedup store forget`, or `SledStore::forget`.
///
/// # Its producer
///
/// `enable.idempotence` and `acks=all` are set whatever is left out, and what would break them is
/// refused at build with a reason; [`audit::dead_letter`](crate::audit::dead_letter) has the list. Where
/// nothing else is said, `delivery.timeout.ms` is 60,000 (how long a letter is tried for),
/// `message.max.bytes` 100,000,000, `partitioner` `murmur2_random` and `linger.ms` 0. At most 64 MiB
/// of letters are in flight; more wait.
#[derive(Clone)]
pub struct DeadLetter {
    topic: String,
    config: ClientConfig,
}

impl DeadLetter {
    /// Letters go to `topic`, on the consumer's own cluster unless [`config`](Self::config) names
    /// another.
    #[must_use]
    pub fn to_topic(topic: impl Into<String>) -> Self {
        Self {
            topic: topic.into(),
            config: ClientConfig::new(),
        }
    }

    /// Settings of the producer, in librdkafka's names, beside those that are taken from the
    /// consumer: where the brokers are, how they are reached and who asks (`bootstrap.servers`,
    /// `security.*`, `sasl.*`, `ssl.*`, `socket.*`, `client.*` and their like).
    ///
    /// Settings that name `bootstrap.servers` stand alone: nothing is taken from the consumer then,
    /// so that no password goes to another cluster.
    #[must_use]
    pub fn config(mut self, config: ClientConfig) -> Self {
        self.config = config;
        self
    }
}
