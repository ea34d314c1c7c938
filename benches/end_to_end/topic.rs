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
    bootstrap: String,
    groups: AtomicU64,
}

impl Topic {
    /// Makes a topic and fills it: keys of 18 bytes, each once, and values of 100 bytes, evenly
    /// over the partitions.
    pub(crate) async fn produce(bootstrap: &str, partitions: i32, records: usize) -> Outcome<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let topic = Self {
            name: format!("bench-{partitions}-{}", now.as_nanos()),
            records,
            bootstrap: bootstrap.to_owned(),
            groups: AtomicU64::new(0),
        };
        let new = NewTopic::new(&topic.name, partitions, TopicReplication::Fixed(1));
        let created = topic.admin()?.create_topics([&new], &options()).await?;
        for result in created {
            result.map_err(|(name, code)| format!("creating topic {name}: {code}"))?;
        }
        topic.fill(partitions)?;
        topic.check(partitions)?;
        Ok(topic)
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
        config
    }

    fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap);
        config
    }

    fn admin(&self) -> Outcome<AdminClient<DefaultClientContext>> {
        Ok(self.client().create()?)
    }

    fn fill(&self, partitions: i32) -> Outcome<()> {
        let mut config = self.client();
        config
            .set("linger.ms", "50")
            .set("batch.num.messages", "10000");
        let producer: BaseProducer = config.create()?;
        let value = [b'v'; VALUE_BYTES];
        for (number, partition) in (0..self.records).zip((0..partitions).cycle()) {
            let key = format!("order-{number:012}");
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
        Ok(producer.flush(REQUEST_LIMIT)?)
    }

    /// A record that was refused is told to nobody above: count what is there.
    fn check(&self, partitions: i32) -> Outcome<()> {
        let consumer: BaseConsumer = self.client().create()?;
        let mut there = 0;
        for partition in 0..partitions {
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
