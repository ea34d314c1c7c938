//! The transactional producer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerGroupMetadata;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, Message as _, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::kafka_errors;
use super::patience::Patience;
use super::round::{Fault, Wire};
use super::{OutboxError, Outgoing};
use crate::record::{NextOffset, TopicPartition};
use crate::source::ClientConfig;
use crate::source::kafka::{Group, Standing, log};

/// How late it is noticed that nobody waits any more.
const SLICE: Duration = Duration::from_millis(500);
/// How long a full queue is given to empty itself.
const QUEUE_PAUSE: Duration = Duration::from_millis(5);
const SPIN: Duration = Duration::from_micros(100);

/// Confirmations of one transaction's records.
#[derive(Default)]
struct Flight {
    state: Mutex<Confirmations>,
    changed: Condvar,
}

#[derive(Default)]
struct Confirmations {
    open: usize,
    /// The first record that was not written.
    failed: Option<(KafkaError, String)>,
}

impl Flight {
    fn state(&self) -> MutexGuard<'_, Confirmations> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A producer of transactions, for one membership.
pub(super) struct Producer {
    transactional_id: String,
    timeout: Duration,
    group: Group,
    flight: Arc<Flight>,
    client: Arc<BaseProducer<Context>>,
    ended: Arc<AtomicBool>,
    /// `None` once it is joined.
    poller: Option<JoinHandle<()>>,
}

impl Producer {
    /// Makes the client and fences its past: a transaction that another process with the same id has
    /// left open is ended before this returns. `None` where the wait was given up. Blocks.
    pub(super) fn open(
        config: &ClientConfig,
        transactional_id: &str,
        timeout: Duration,
        group: Group,
        limit: Duration,
        given_up: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, OutboxError> {
        let not_started = |message: String| OutboxError::Start {
            transactional_id: transactional_id.to_owned(),
            message,
        };
        let flight = Arc::new(Flight::default());
        let context = Context(Arc::clone(&flight));
        let producer: BaseProducer<Context> = config
            .create_with_context(context)
            .map_err(|error| not_started(error.to_string()))?;
        let producer = Arc::new(producer);
        let ended = Arc::new(AtomicBool::new(false));
        let (served, until) = (Arc::clone(&producer), Arc::clone(&ended));
        let poller = std::thread::Builder::new()
            .name("outbox".to_owned())
            .spawn(move || serve(&served, &until))
            .map_err(|error| not_started(error.to_string()))?;
        let this = Self {
            transactional_id: transactional_id.to_owned(),
            timeout,
            group,
            flight,
            client: producer,
            ended,
            poller: Some(poller),
        };
        let end = Instant::now() + limit;
        while !given_up() {
            let Err(error) = this.client.init_transactions(SLICE) else {
                return Ok(Some(this));
            };
            let message = error.to_string();
            match this.fault(error) {
                Fault::Again(_) if Instant::now() < end => {}
                Fault::Never(error) => return Err(error),
                _ => return Err(not_started(message)),
            }
        }
        Ok(None)
    }

    fn fault(&self, error: KafkaError) -> Fault {
        kafka_errors::step(error, &self.transactional_id)
    }
}

impl Wire for Producer {
    type Member = ConsumerGroupMetadata;

    fn member(&self) -> Option<ConsumerGroupMetadata> {
        self.group.metadata()
    }

    fn standing(&self, partition: &TopicPartition) -> Standing {
        self.group.standing(partition)
    }

    fn begin(&self) -> Result<(), Fault> {
        // Nothing is in flight: the transaction before ended with all its confirmations.
        *self.flight.state() = Confirmations::default();
        let begun = self.client.begin_transaction();
        begun.map_err(|error| self.fault(error))
    }

    fn send(&self, record: &Outgoing, patience: &Patience<'_>) -> Result<(), Fault> {
        let mut letter = BaseRecord::<[u8], [u8]>::to(&record.topic);
        letter.partition = record.partition;
        letter.timestamp = record.timestamp_ms;
        letter.key = record.key.as_deref();
        letter.payload = record.value.as_deref();
        if !record.headers.is_empty() {
            let list = OwnedHeaders::new_with_capacity(record.headers.len());
            letter.headers = Some(record.headers.iter().fold(list, |list, (key, value)| {
                let value = value.as_deref();
                list.insert(Header { key, value })
            }));
        }
        self.flight.state().open += 1;
        loop {
            let (error, again) = match self.client.send(letter) {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            };
            let full = error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull);
            if full && patience.wait(QUEUE_PAUSE) {
                letter = again;
                continue;
            }
            self.flight.state().open -= 1;
            return Err(kafka_errors::record(&error, &record.topic));
        }
    }

    fn send_offsets(
        &self,
        positions: &[(TopicPartition, NextOffset)],
        member: &ConsumerGroupMetadata,
    ) -> Result<(), Fault> {
        let mut list = TopicPartitionList::with_capacity(positions.len());
        for (name, next) in positions {
            let at = Offset::Offset(next.get());
            list.add_partition_offset(name.topic(), name.partition(), at)
                .map_err(|error| self.fault(error))?;
        }
        self.client
            .send_offsets_to_transaction(&list, member, self.timeout)
            .map_err(|error| self.fault(error))
    }

    fn confirmed(&self, patience: &Patience<'_>) -> Result<(), Fault> {
        let mut state = self.flight.state();
        while state.open > 0 && state.failed.is_none() {
            if patience.left().is_zero() {
                return Err(Fault::Abort(format!(
                    "{} records are not confirmed",
                    state.open
                )));
            }
            state = match self.flight.changed.wait_timeout(state, SLICE) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        if let Some((error, topic)) = state.failed.take() {
            return Err(kafka_errors::record(&error, &topic));
        }
        drop(state);
        // The last confirmation counts as in flight until the poller has let go of it, and a commit
        // would wait for that with a pause that is longer than all the rest.
        let end = Instant::now() + SLICE;
        while self.client.in_flight_count() > 0 && Instant::now() < end {
            std::thread::sleep(SPIN);
        }
        Ok(())
    }

    fn commit(&self) -> Result<(), Fault> {
        let committed = self.client.commit_transaction(SLICE);
        committed.map_err(|error| self.fault(error))
    }

    fn abort(&self) -> Result<(), Fault> {
        let aborted = self.client.abort_transaction(SLICE);
        aborted.map_err(|error| self.fault(error))
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(poller) = self.poller.take() {
            let _ = poller.join();
        }
    }
}

/// Lets confirmations in until the end.
fn serve(producer: &BaseProducer<Context>, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        // A log subscriber is the user's code. Its panic must not leave records without an answer;
        // the panic hook tells it.
        let polled = std::panic::AssertUnwindSafe(|| producer.poll(SLICE / 5));
        let _ = std::panic::catch_unwind(polled);
    }
}

/// What librdkafka calls back.
struct Context(Arc<Flight>);

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log::say("outbox", level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(%error, reason, "the transactional producer reports an error");
    }
}

impl ProducerContext for Context {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let mut state = self.0.state();
        state.open = state.open.saturating_sub(1);
        if let Err((error, message)) = result {
            let topic = message.topic().to_owned();
            state.failed.get_or_insert((error.clone(), topic));
        }
        drop(state);
        self.0.changed.notify_all();
    }
}
