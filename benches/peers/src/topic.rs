//! A topic that all contenders of a contest read, and the group by which each reads it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::Outcome;
use crate::keys::key;

const REQUEST_LIMIT: Duration = Duration::from_secs(30);
const VALUE_BYTES: usize = 100;
/// Between two looks at a group's position: a hundredth of the shortest run.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A running broker.
pub struct Broker {
    bootstrap: String,
    runtime: tokio::runtime::Runtime,
}

impl Broker {
    /// # Errors
    ///
    /// The operating system gives no thread.
    pub fn at(bootstrap: String) -> Outcome<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self { bootstrap, runtime })
    }

    #[must_use]
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// Makes a topic with one partition. One is where a durable consumer has it hardest: nothing
    /// is shared, and nothing runs beside it.
    ///
    /// # Errors
    ///
    /// The broker refuses, or does not answer.
    pub fn create(&self, name: &str) -> Outcome<()> {
        let new = NewTopic::new(name, 1, TopicReplication::Fixed(1));
        let admin = self.admin()?;
        let created = admin.create_topics([&new], &options());
        for result in self.runtime.block_on(created)? {
            result.map_err(|(name, code)| format!("creating topic {name}: {code}"))?;
        }
        Ok(())
    }

    /// Deletes the topics whose names begin with `prefix`.
    ///
    /// # Errors
    ///
    /// The broker refuses, or does not answer.
    pub fn delete_all(&self, prefix: &str) -> Outcome<()> {
        let admin = self.admin()?;
        let metadata = admin.inner().fetch_metadata(None, REQUEST_LIMIT)?;
        let names: Vec<_> = metadata
            .topics()
            .iter()
            .map(rdkafka::metadata::MetadataTopic::name)
            .collect();
        let ours: Vec<_> = names
            .into_iter()
            .filter(|name| name.starts_with(prefix))
            .collect();
        if ours.is_empty() {
            return Ok(());
        }
        let deleted = admin.delete_topics(&ours, &options());
        for result in self.runtime.block_on(deleted)? {
            result.map_err(|(name, code)| format!("deleting topic {name}: {code}"))?;
        }
        Ok(())
    }

    /// Writes records 0 to `records`: keys of 16 bytes, each once, and values of 100 bytes.
    ///
    /// # Errors
    ///
    /// The broker refuses a record, or does not answer.
    pub fn fill(&self, topic: &str, records: u64) -> Outcome<()> {
        let mut config = self.client();
        config
            .set("linger.ms", "50")
            .set("batch.num.messages", "10000");
        let producer: BaseProducer = config.create()?;
        let value = [b'v'; VALUE_BYTES];
        for number in 0..records {
            let key = key(number);
            let mut record = BaseRecord::to(topic)
                .partition(0)
                .key(&key[..])
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
        // A record that was refused is told to nobody above: count what is there.
        let end = self.end(topic)?;
        if u64::try_from(end) != Ok(records) {
            return Err(format!("{end} of {records} records arrived").into());
        }
        Ok(())
    }

    /// The offset behind the topic's last record.
    ///
    /// # Errors
    ///
    /// The broker does not answer.
    pub fn end(&self, topic: &str) -> Outcome<i64> {
        let consumer: BaseConsumer = self.client().create()?;
        let (_, high) = consumer.fetch_watermarks(topic, 0, REQUEST_LIMIT)?;
        Ok(high)
    }

    /// Looks at a group from outside: the same for whatever client the group's member has.
    ///
    /// # Errors
    ///
    /// The client cannot be made.
    pub fn watch(&self, group: &str, topic: &str) -> Outcome<Watch> {
        let mut config = self.client();
        config.set("group.id", group);
        let mut partition = TopicPartitionList::new();
        partition.add_partition(topic, 0);
        Ok(Watch {
            consumer: config.create()?,
            partition,
        })
    }

    fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap);
        config
    }

    fn admin(&self) -> Outcome<AdminClient<DefaultClientContext>> {
        Ok(self.client().create()?)
    }
}

fn options() -> AdminOptions {
    AdminOptions::new().operation_timeout(Some(REQUEST_LIMIT))
}

/// A name that no other run has.
///
/// # Errors
///
/// The clock is before 1970.
pub fn fresh(what: &str) -> Outcome<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(format!("bench-{what}-{}", now.as_nanos()))
}

/// What a group has committed.
pub struct Watch {
    consumer: BaseConsumer,
    partition: TopicPartitionList,
}

impl Watch {
    /// The committed offset; 0 before the first. Of an open transaction nothing is seen.
    ///
    /// # Errors
    ///
    /// The broker does not answer.
    pub fn position(&self) -> Outcome<i64> {
        let partition = self.partition.clone();
        let found = self.consumer.committed_offsets(partition, REQUEST_LIMIT)?;
        let offset = found
            .elements()
            .first()
            .map(rdkafka::topic_partition_list::TopicPartitionListElem::offset);
        Ok(match offset {
            Some(Offset::Offset(offset)) => offset,
            _ => 0,
        })
    }

    /// Waits until the group has committed `offset`; `alive` is asked between the looks.
    ///
    /// # Errors
    ///
    /// The limit has passed, or `alive` fails.
    pub fn wait_for(
        &self,
        offset: u64,
        limit: Duration,
        mut alive: impl FnMut() -> Outcome<()>,
    ) -> Outcome<()> {
        let deadline = Instant::now() + limit;
        loop {
            let position = self.position()?;
            if u64::try_from(position).is_ok_and(|position| position >= offset) {
                return Ok(());
            }
            alive()?;
            if Instant::now() > deadline {
                return Err(format!("the group is at {position} of {offset}").into());
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}
