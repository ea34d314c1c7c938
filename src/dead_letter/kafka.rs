//! The producer of letters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _, ProducerContext};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::cause::Cause;
use super::kafka_errors::remedy;
use super::room::{IN_FLIGHT_KIB_MAX, size_kib};
use super::{DeadLetter, DeadLetterError, letter};
use crate::audit::Refused;
use crate::error::BoxError;
use crate::record::Record;
use crate::source::ClientConfig;
use crate::source::kafka::log;

/// How late it is noticed that nobody waits for the topic, or that the end has come.
const SLICE: Duration = Duration::from_millis(100);
const ANSWER_WAIT: Duration = Duration::from_millis(2);
const ASK_LIMIT: Duration = Duration::from_secs(1);

/// Writes letters to the dead-letter topic.
pub(crate) struct Letters {
    topic: String,
    group: String,
    /// Whether a record of the topic's own name comes from it.
    elsewhere: bool,
    timeout_ms: String,
    in_flight_kib: Arc<Semaphore>,
    producer: Arc<BaseProducer<Context>>,
    ended: Arc<AtomicBool>,
    /// `None` once it is joined.
    poller: Option<JoinHandle<()>>,
}

impl Letters {
    /// Makes the producer and looks for the topic, for `limit` at the longest; `None` where the wait
    /// was given up. Blocks.
    ///
    /// # Errors
    /// [`DeadLetterError::Refused`], [`DeadLetterError::Producer`], or [`DeadLetterError::Topic`] where it is not there.
    pub(crate) fn open(
        dead_letter: &DeadLetter,
        consumer: &ClientConfig,
        limit: Duration,
        given_up: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, DeadLetterError> {
        let findings = dead_letter.findings(consumer, &[]);
        if !findings.is_empty() {
            return Err(Refused(findings).into());
        }
        let topic = dead_letter.topic().to_owned();
        let config = dead_letter.effective(consumer);
        let not_made = |cause| DeadLetterError::Producer {
            topic: topic.clone(),
            cause,
        };
        let producer: BaseProducer<Context> = config
            .create_with_context(Context)
            .map_err(|error| not_made(error.into()))?;
        let producer = Arc::new(producer);
        let ended = Arc::new(AtomicBool::new(false));
        let (served, until) = (Arc::clone(&producer), Arc::clone(&ended));
        let poller = std::thread::Builder::new()
            .name("dead-letter".to_owned())
            .spawn(move || serve(&served, &until))
            .map_err(|error| not_made(error.into()))?;
        let timeout_ms = ["delivery.timeout.ms", "message.timeout.ms"]
            .iter()
            .find_map(|name| config.get(name))
            .unwrap_or("as configured");
        let letters = Self {
            group: consumer.get("group.id").unwrap_or_default().to_owned(),
            elsewhere: dead_letter.is_elsewhere(),
            timeout_ms: timeout_ms.to_owned(),
            in_flight_kib: Arc::new(Semaphore::new(IN_FLIGHT_KIB_MAX as usize)),
            producer,
            ended,
            poller: Some(poller),
            topic,
        };
        let found = letters.find_topic(Instant::now() + limit, given_up)?;
        Ok(found.then_some(letters))
    }

    /// Whether it was found, or else given up.
    fn find_topic(
        &self,
        end: Instant,
        given_up: &dyn Fn() -> bool,
    ) -> Result<bool, DeadLetterError> {
        while !given_up() {
            match self.ask_for_topic() {
                Ok(()) => return Ok(true),
                Err(error) if is_missing(&error) || Instant::now() >= end => {
                    return Err(DeadLetterError::Topic {
                        topic: self.topic.clone(),
                        remedy: remedy(&error, &self.timeout_ms),
                        cause: error.into(),
                    });
                }
                // The call itself has waited, unless there is no broker to wait for.
                Err(_) => std::thread::sleep(SLICE),
            }
        }
        Ok(false)
    }

    fn ask_for_topic(&self) -> KafkaResult<()> {
        let client = self.producer.client();
        let metadata = client.fetch_metadata(Some(&self.topic), ASK_LIMIT)?;
        let topic = metadata
            .topics()
            .iter()
            .find(|topic| topic.name() == self.topic);
        let missing = RDKafkaErrorCode::UnknownTopicOrPartition;
        match topic.map(|topic| (topic.error(), topic.partitions().len())) {
            Some((Some(code), _)) => Err(KafkaError::MetadataFetch(code.into())),
            Some((None, 1..)) => Ok(()),
            Some((None, 0)) | None => Err(KafkaError::MetadataFetch(missing)),
        }
    }

    /// Writes the letter for a record and waits until the brokers have confirmed it.
    ///
    /// Dropping the future gives up the wait, not the letter: it may be written all the same.
    ///
    /// # Errors
    /// [`DeadLetterError::Letter`] after `delivery.timeout.ms` at the latest, counted from when the
    /// letters before it left room; [`DeadLetterError::OwnTopic`].
    pub(crate) async fn write(
        &self,
        record: &Record<'_>,
        cause: &Cause<'_>,
    ) -> Result<(), DeadLetterError> {
        if self.is_at(record.topic()) {
            return Err(DeadLetterError::OwnTopic {
                at: record.coordinates(),
            });
        }
        let failed = |error: BoxError, remedy: String| DeadLetterError::Letter {
            topic: self.topic.clone(),
            at: record.coordinates(),
            cause: error,
            remedy,
        };
        let refused = |error: KafkaError| {
            let remedy = remedy(&error, &self.timeout_ms);
            failed(error.into(), remedy)
        };
        let headers = letter::headers(record, cause, &self.group);
        let room = Arc::clone(&self.in_flight_kib)
            .acquire_many_owned(size_kib(record, &headers))
            .await;
        let confirmed = match room {
            Ok(room) => self.send(record, &headers, room).map_err(refused)?,
            Err(closed) => return Err(failed(closed.into(), GONE.to_owned())),
        };
        match confirmed.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(refused(error)),
            Err(gone) => Err(failed(gone.into(), GONE.to_owned())),
        }
    }

    fn send(
        &self,
        record: &Record<'_>,
        headers: &[letter::Header<'_>],
        room: OwnedSemaphorePermit,
    ) -> KafkaResult<oneshot::Receiver<KafkaResult<()>>> {
        let (answer, confirmed) = oneshot::channel();
        let in_flight = Box::new(InFlight { answer, room });
        let list = OwnedHeaders::new_with_capacity(headers.len());
        let list = headers.iter().fold(list, |list, (name, value)| {
            list.insert(Header {
                key: name,
                value: value.as_deref(),
            })
        });
        let mut letter = BaseRecord::<[u8], [u8], _>::with_opaque_to(&self.topic, in_flight);
        letter.headers = Some(list);
        letter.key = record.key();
        letter.payload = record.value();
        // Without the record's timestamp: retention by time would delete the letter of an old
        // record at once, and the broker would refuse that of one from the future.
        self.producer.send(letter).map_err(|(error, _)| error)?;
        Ok(confirmed)
    }

    pub(super) fn is_at(&self, topic: &str) -> bool {
        !self.elsewhere && topic == self.topic
    }

    /// Waits for letters in flight. Where each `write` was waited for there are none.
    ///
    /// # Errors
    /// [`DeadLetterError::Unconfirmed`] where some are left.
    pub(crate) fn close(&self, limit: Duration) -> Result<(), DeadLetterError> {
        let end = Instant::now() + limit;
        while self.in_flight_kib.available_permits() < IN_FLIGHT_KIB_MAX as usize {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(DeadLetterError::Unconfirmed {
                    topic: self.topic.clone(),
                    limit_ms: limit.as_millis(),
                });
            }
            // Whatever it says, what is in flight is known here. It may end while the other thread
            // is still giving the last answer.
            let _ = self.producer.flush(left.min(SLICE));
            std::thread::sleep(left.min(ANSWER_WAIT));
        }
        Ok(())
    }
}

impl Drop for Letters {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(poller) = self.poller.take() {
            let _ = poller.join();
        }
    }
}

const GONE: &str = "The producer has ended. Look at what the client logs";

fn is_missing(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::UnknownTopicOrPartition
                | RDKafkaErrorCode::UnknownTopic
                | RDKafkaErrorCode::InvalidTopic
                | RDKafkaErrorCode::TopicAuthorizationFailed
        )
    )
}

/// Lets answers in until the end.
fn serve(producer: &BaseProducer<Context>, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        // A log subscriber is the user's code. Its panic must not leave every letter without an
        // answer; the panic hook tells it.
        let polled = std::panic::AssertUnwindSafe(|| producer.poll(SLICE));
        let _ = std::panic::catch_unwind(polled);
    }
}

/// A letter on its way: who waits for it, and the room that it takes for as long, waited for or
/// not.
struct InFlight {
    answer: oneshot::Sender<KafkaResult<()>>,
    room: OwnedSemaphorePermit,
}

/// What librdkafka calls back.
struct Context;

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log::say("dead letters", level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(%error, reason, "the producer of dead letters reports an error");
    }
}

impl ProducerContext for Context {
    type DeliveryOpaque = Box<InFlight>;

    fn delivery(&self, result: &DeliveryResult<'_>, in_flight: Box<InFlight>) {
        let answer = match result {
            Ok(_) => Ok(()),
            Err((error, _)) => Err(error.clone()),
        };
        let InFlight {
            answer: waiting,
            room,
        } = *in_flight;
        // Before the answer: whoever has it may close, and no letter is in flight then.
        drop(room);
        // Nobody waits where the future was dropped.
        let _ = waiting.send(answer);
    }
}
