//! A broker inside the process: librdkafka's mock cluster.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::bindings as sys;
use rdkafka::error::KafkaError;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};

const SEND_LIMIT: Duration = Duration::from_secs(30);

/// A call to the embedded broker failed.
#[derive(Debug, thiserror::Error)]
#[error("the embedded broker: {operation}: {source}")]
pub struct BrokerError {
    operation: &'static str,
    source: KafkaError,
}

fn failed(operation: &'static str) -> impl FnOnce(KafkaError) -> BrokerError {
    move |source| BrokerError { operation, source }
}

/// A record to produce. Null and empty are told apart, as in Kafka.
#[derive(Clone, Copy, Debug, Default)]
pub struct Produced<'a> {
    /// The partition.
    pub partition: i32,
    /// The record key.
    pub key: Option<&'a [u8]>,
    /// The record value.
    pub value: Option<&'a [u8]>,
    /// Headers, in order; names may repeat.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
}

/// A Kafka cluster of one broker on a loopback port of this process, for as long as this lives.
///
/// Other processes reach it too. It is good for consuming, groups and refused requests. It knows
/// no transactions, does not drop a producer's retries, and keeps 5 MiB of a partition; what needs
/// those needs a real broker.
pub struct EmbeddedBroker {
    producer: BaseProducer,
    bootstrap: String,
}

impl EmbeddedBroker {
    /// Starts one.
    ///
    /// # Errors
    /// Where librdkafka cannot make it: no port, no thread.
    pub fn start() -> Result<Self, BrokerError> {
        let producer: BaseProducer = ClientConfig::new()
            .set("test.mock.num.brokers", "1")
            .set("acks", "all")
            .set("linger.ms", "0")
            .create()
            .map_err(failed("starting"))?;
        let no_cluster = || KafkaError::ClientCreation("no mock cluster".to_owned());
        let bootstrap = producer
            .client()
            .mock_cluster()
            .ok_or_else(no_cluster)
            .map_err(failed("starting"))?
            .bootstrap_servers();
        no_rebalance_delay(&producer);
        Ok(Self {
            producer,
            bootstrap,
        })
    }

    /// What goes into `bootstrap.servers`.
    #[must_use]
    pub fn bootstrap_servers(&self) -> &str {
        &self.bootstrap
    }

    /// Makes a topic.
    ///
    /// # Errors
    /// Where it exists.
    pub fn create_topic(&self, name: &str, partitions: i32) -> Result<(), BrokerError> {
        match self.producer.client().mock_cluster() {
            Some(cluster) => cluster
                .create_topic(name, partitions, 1)
                .map_err(failed("creating a topic")),
            None => Ok(()),
        }
    }

    /// Produces records and waits until all are there.
    ///
    /// # Errors
    /// Where one was not accepted within 30 seconds.
    pub fn produce(&self, topic: &str, records: &[Produced<'_>]) -> Result<(), BrokerError> {
        for produced in records {
            let mut record = BaseRecord::<[u8], [u8]>::to(topic).partition(produced.partition);
            record.key = produced.key;
            record.payload = produced.value;
            if !produced.headers.is_empty() {
                let headers = produced
                    .headers
                    .iter()
                    .fold(OwnedHeaders::new(), |list, (key, value)| {
                        list.insert(Header { key, value: *value })
                    });
                record = record.headers(headers);
            }
            self.producer
                .send(record)
                .map_err(|(error, _)| failed("producing")(error))?;
            self.producer.poll(Duration::ZERO);
        }
        self.producer.flush(SEND_LIMIT).map_err(failed("producing"))
    }

    /// Has the broker refuse the next offset commits, one for each name of an error: for example
    /// `REBALANCE_IN_PROGRESS`. Names that it does not know count as `UNKNOWN`.
    pub fn refuse_commits(&self, errors: &[&str]) {
        let codes: Vec<_> = errors
            .iter()
            .map(|name| match *name {
                "REBALANCE_IN_PROGRESS" => RDKafkaRespErr::RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS,
                "COORDINATOR_LOAD_IN_PROGRESS" => {
                    RDKafkaRespErr::RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS
                }
                _ => RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN,
            })
            .collect();
        if let Some(cluster) = self.producer.client().mock_cluster() {
            cluster.request_errors(RDKafkaApiKey::OffsetCommit, &codes);
        }
    }

    /// Takes back what is left of [`refuse_commits`](EmbeddedBroker::refuse_commits).
    pub fn accept_commits(&self) {
        if let Some(cluster) = self.producer.client().mock_cluster() {
            cluster.clear_request_errors(RDKafkaApiKey::OffsetCommit);
        }
    }
}

/// The mock cluster lets every group wait three seconds for more members; no test has that time.
/// rdkafka has no call for it.
#[allow(unsafe_code)]
fn no_rebalance_delay(producer: &BaseProducer) {
    // SAFETY: the client is alive and made its own mock cluster, which lives as long as it does;
    // the call sets a number in it under its lock.
    unsafe {
        let cluster = sys::rd_kafka_handle_mock_cluster(producer.client().native_ptr());
        if !cluster.is_null() {
            sys::rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 0);
        }
    }
}
