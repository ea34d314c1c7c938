//! The topic that all contenders read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use crate::support::Outcome;

const REQUEST_LIMIT: Duration = Duration::from_secs(30);
const VALUE_BYTES: usize = 100;

pub(crate) struct Topic {
    pub(crate) name: String,
    pub(crate) records: usize,
    /// How many different keys it holds.
    pub(crate) keys: usize,
    pub(crate) partitions: usize,
    bootstrap: String,
    groups: AtomicU64,
}

impl Topic {
    /// Makes a topic and fills it: keys of 18 bytes and values of 100 bytes, evenly over the
    /// partitions. So many of a hundred are copies of an earlier record in their partition, spread
    /// over all before it; where all are, the topic has one key a partition.
    pub(crate) async fn produce(
        bootstrap: &str,
        partitions: usize,
        records: usize,
        copies: usize,
    ) -> Outcome<Self> {
        let topic = Self::empty(bootstrap, partitions).await?;
        topic.filled(records, copies)
    }

    /// Makes a topic without records.
    pub(crate) async fn empty(bootstrap: &str, partitions: usize) -> Outcome<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let topic = Self {
            name: format!("bench-{partitions}-{}", now.as_nanos()),
            records: 0,
            keys: 0,
            partitions,
            bootstrap: bootstrap.to_owned(),
            groups: AtomicU64::new(0),
        };
        let count = i32::try_from(partitions)?;
        let new = NewTopic::new(&topic.name, count, TopicReplication::Fixed(1));
        let created = topic.admin()?.create_topics([&new], &options()).await?;
        for result in created {
            result.map_err(|(name, code)| format!("creating topic {name}: {code}"))?;
        }
        Ok(topic)
    }

    fn filled(mut self, records: usize, copies: usize) -> Outcome<Self> {
        self.records = records;
        self.keys = self.fill(copies)?;
        self.check()?;
        Ok(self)
    }

    pub(crate) async fn delete(&self) -> Outcome<()> {
        let deleted = self.admin()?.delete_topics(&[&self.name], &options());
        for result in deleted.await? {
            result.map_err(|(name, code)| format!("deleting topic {name}: {code}"))?;
        }
        Ok(())
    }

    /// A consumer's configuration in a group that nobody else is in.
    pub(crate) fn fresh_group(&self) -> ClientConfig {
        let number = self.groups.fetch_add(1, Ordering::Relaxed);
        let mut config = self.client();
        config
            .set("group.id", format!("{}-{number}", self.name))
            .set("auto.offset.reset", "earliest");
        // To try out others: name=value, parted by commas.
        let settings = std::env::var("BENCH_SETTINGS").unwrap_or_default();
        for (name, value) in settings.split(',').filter_map(|one| one.split_once('=')) {
            config.set(name, value);
        }
        config
    }

    pub(crate) fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap);
        config
    }

    fn admin(&self) -> Outcome<AdminClient<DefaultClientContext>> {
        Ok(self.client().create()?)
    }

    /// Whether the record of that number is one, where so many of a hundred are.
    fn is_copy(&self, number: usize, copies: usize) -> bool {
        number >= self.partitions && number * copies / 100 != (number + 1) * copies / 100
    }

    /// Says how many different keys there are.
    fn fill(&self, copies: usize) -> Outcome<usize> {
        let mut config = self.client();
        config
            .set("linger.ms", "50")
            .set("batch.num.messages", "10000");
        let producer: BaseProducer = config.create()?;
        let value = [b'v'; VALUE_BYTES];
        let (mut keys, mut random) = (0, 0_u64);
        for (number, partition) in (0..self.records).zip((0..self.partitions).cycle()) {
            // Knuth's generator: the same topic every time.
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let before = number / self.partitions;
            let is_copy = self.is_copy(number, copies);
            let key = if copies == 100 {
                partition
            } else if is_copy {
                let back = usize::try_from(random >> 33)? % before;
                let first = partition + back * self.partitions;
                // Not of what is a copy itself.
                if self.is_copy(first, copies) {
                    partition
                } else {
                    first
                }
            } else {
                number
            };
            keys += usize::from(!is_copy);
            let key = format!("order-{key:012}");
            let partition = i32::try_from(partition)?;
            let mut record = BaseRecord::to(&self.name)
                .partition(partition)
                .key(&key)
                .payload(&value[..]);
            while let Err((error, back)) = producer.send(record) {
                if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) {
                    return Err(error.into());
                }
                producer.poll(Duration::from_millis(10));
                record = back;
            }
        }
        producer.flush(REQUEST_LIMIT)?;
        Ok(keys)
    }

    /// A record that was refused is told to nobody above: count what is there.
    fn check(&self) -> Outcome<()> {
        let consumer: BaseConsumer = self.client().create()?;
        let mut there = 0;
        for partition in 0..i32::try_from(self.partitions)? {
            let (low, high) = consumer.fetch_watermarks(&self.name, partition, REQUEST_LIMIT)?;
            there += high - low;
        }
        if usize::try_from(there) != Ok(self.records) {
            return Err(format!("{} of {} records arrived", there, self.records).into());
        }
        Ok(())
    }
}

fn options() -> AdminOptions {
    AdminOptions::new().operation_timeout(Some(REQUEST_LIMIT))
}
