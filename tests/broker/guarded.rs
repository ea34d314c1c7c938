//! Producers with a guarded configuration and with librdkafka's own: what lies in the log.

use std::sync::Mutex;

use idempotent_consumer::producer::guarded;
use idempotent_consumer::testkit::ApiKey;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message as _};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _, ProducerContext};
use rdkafka::{ClientConfig, ClientContext};

use crate::broker::{self, DEADLINE};
use crate::dump::Dump;
use crate::{admin, dump};

/// What became of each record: its offset, or why there is none.
#[derive(Default)]
struct Answers(Mutex<Vec<Result<i64, KafkaError>>>);

impl ClientContext for Answers {}

impl ProducerContext for Answers {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let answer = match result {
            Ok(record) => Ok(record.offset()),
            Err((error, _)) => Err(error.clone()),
        };
        self.0.lock().unwrap().push(answer);
    }
}

type Sender = BaseProducer<Answers>;

fn plain(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap);
    config
}

fn sender(config: &ClientConfig) -> Sender {
    config.create_with_context(Answers::default()).unwrap()
}

/// Sends one record and waits until the producer says what became of it.
fn send(producer: &Sender, topic: &str, value: &str) -> Result<i64, KafkaError> {
    let record = BaseRecord::<str, str>::to(topic)
        .partition(0)
        .payload(value);
    producer.send(record).map_err(|(error, _)| error).unwrap();
    producer.flush(DEADLINE).unwrap();
    producer.context().0.lock().unwrap().pop().unwrap()
}

fn numbers(dump: &Dump) -> Vec<(i64, i64)> {
    let batches = dump.batches.iter();
    batches
        .map(
            |dump::Batch {
                 producer_id,
                 base_sequence,
             }| (*producer_id, *base_sequence),
        )
        .collect()
}

// C088
#[test]
fn a_guarded_producers_batches_carry_its_id_and_those_of_librdkafkas_default_none() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic(&kafka, "guarded", 1);
    send(&sender(&plain(kafka.bootstrap())), &topic, "default").unwrap();
    let config = guarded(plain(kafka.bootstrap())).unwrap();
    let producer = sender(&config);
    send(&producer, &topic, "guarded").unwrap();
    send(&producer, &topic, "guarded").unwrap();

    let Some(dump) = Dump::of(&kafka, &topic) else {
        return;
    };
    assert_eq!(dump.payloads, ["default", "guarded", "guarded"]);
    let [default, first, second] = numbers(&dump)[..] else {
        panic!("{dump:?}")
    };
    assert_eq!(default, (-1, -1));
    let (id, sequence) = first;
    assert!(id >= 0 && sequence == 0, "{dump:?}");
    // The application sent it twice: to the broker it is the next record.
    assert_eq!(second, (id, 1));
}

#[test]
fn where_the_answer_is_lost_a_guarded_producer_leaves_one_record_and_a_default_one_two() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let Some((_turn, proxy)) = broker::proxy(&kafka) else {
        return;
    };
    let through = plain(&proxy.local_addr().to_string());
    for (idea, config, copies) in [
        ("retried", through.clone(), 2),
        ("retried-guarded", guarded(through).unwrap(), 1),
    ] {
        let topic = admin::topic(&kafka, idea, 1);
        let producer = sender(&config);
        assert_eq!(send(&producer, &topic, "before").unwrap(), 0);
        proxy.disconnect_before_replies(ApiKey::PRODUCE, 1);
        send(&producer, &topic, "pay-77").unwrap();
        assert_eq!(kafka.end_offsets(&topic), [1 + copies], "{idea}");
    }
}

#[test]
fn another_session_of_a_guarded_producer_is_another_producer() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic(&kafka, "sessions", 1);
    let config = guarded(plain(kafka.bootstrap())).unwrap();
    for _session in 1..=2 {
        send(&sender(&config), &topic, "pay-77").unwrap();
    }
    let Some(dump) = Dump::of(&kafka, &topic) else {
        return;
    };
    assert_eq!(dump.payloads, ["pay-77", "pay-77"]);
    let [(first, 0), (second, 0)] = numbers(&dump)[..] else {
        panic!("{dump:?}")
    };
    assert!(first >= 0 && second >= 0 && first != second, "{dump:?}");
}

#[test]
fn a_time_out_of_a_guarded_producer_may_be_a_success_and_sending_again_makes_a_copy() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let Some((_turn, proxy)) = broker::proxy(&kafka) else {
        return;
    };
    let topic = admin::topic(&kafka, "time-out", 1);
    let mut config = plain(&proxy.local_addr().to_string());
    config
        .set("delivery.timeout.ms", "2000")
        .set("request.timeout.ms", "1000");
    let producer = sender(&guarded(config).unwrap());
    assert_eq!(send(&producer, &topic, "before").unwrap(), 0);

    proxy.drop_replies(ApiKey::PRODUCE, u32::MAX);
    let answer = send(&producer, &topic, "pay-77");
    let timed_out = KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut);
    assert_eq!(answer, Err(timed_out));
    assert_eq!(
        kafka.end_offsets(&topic),
        [2],
        "it was written all the same"
    );

    proxy.heal();
    send(&producer, &topic, "pay-77").unwrap();
    assert_eq!(kafka.end_offsets(&topic), [3]);
}
