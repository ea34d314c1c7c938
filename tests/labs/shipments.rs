//! What the labs lead to: the shipping service, on the library, reads the topics that they left.

use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use crate::service::{PATIENCE, Service};
use crate::support::kafka::Kafka;

/// Orders that come after the lab's five, so that a kill finds the service at work: also where a
/// sync costs nothing, as in memory.
const MORE: usize = 3_000;

/// The consumer lab's topic, and its story: a crash in the middle, a kill, a rewind. Where the
/// lab lost two orders and shipped one twice, each is shipped once.
pub(crate) fn crashes_and_a_rewind_ship_each_order_once(kafka: &Kafka, topic: &str) {
    let service = Service::new(kafka, topic);
    let mut orders: Vec<_> = (1..=5).map(|number| format!("order-{number}")).collect();

    // It dies where the lab's handler does, at the second order: shipped, and not marked.
    let died = service.start(&["--crash-at", "2"]).dies();
    assert!(!died.success());
    assert_eq!(service.shipped(), orders[..2]);

    produce_more(kafka, topic, &mut orders);
    service.start(&[]).kill_at(100);
    let shipped = service.shipped().len();
    assert!(shipped < orders.len(), "the kill came too late: {shipped}");

    let last = service.start(&[]).finish();
    assert_eq!(service.shipped(), orders, "{last}");

    service.rewind();
    let last = service.start(&[]).finish();
    let all = orders.len();
    assert_eq!(
        last,
        format!("new=0 redelivery={all} duplicate=0 in_doubt=0")
    );
    assert_eq!(service.shipped(), orders);
}

/// A topic with copies of one record that the producer lab made: the first takes effect, also
/// where the service dies right after it.
pub(crate) fn copies_take_effect_once(kafka: &Kafka, topic: &str, copies: i64) {
    let service = Service::new(kafka, topic);
    assert!(!service.start(&["--crash-at", "1"]).dies().success());
    let last = service.start(&[]).finish();
    let again = copies - 1;
    // Announced as in doubt, found to be shipped already, and marked.
    assert_eq!(
        last,
        format!("new=1 redelivery=0 duplicate={again} in_doubt=1")
    );
    service.rewind();
    let last = service.start(&[]).finish();
    assert_eq!(
        last,
        format!("new=0 redelivery={copies} duplicate=0 in_doubt=0")
    );
    assert_eq!(service.shipped().len(), 1);
}

fn produce_more(kafka: &Kafka, topic: &str, orders: &mut Vec<String>) {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", kafka.bootstrap())
        .set("enable.idempotence", "true")
        .create()
        .unwrap();
    for number in 6..6 + MORE {
        let order = format!("order-{number}");
        let record = BaseRecord::<str, str>::to(topic)
            .partition(0)
            .payload(&order);
        producer.send(record).map_err(|(error, _)| error).unwrap();
        orders.push(order);
    }
    producer.flush(PATIENCE).unwrap();
}
