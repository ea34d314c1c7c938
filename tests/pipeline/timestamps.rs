//! What producers say about the time of a record decides nothing.

use std::time::Duration;

use idempotent_consumer::testkit::EmbeddedBroker;
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use crate::scripted::Scripted;
use crate::support::*;

const YEAR_2100_MS: i64 = 4_102_444_800_000;
/// What a producer sends that counts seconds or microseconds.
const SECONDS: i64 = 1_700_000_000;
const MICROSECONDS: i64 = 1_700_000_000_000_000;

fn produce_at(broker: &EmbeddedBroker, key: &str, timestamp_ms: i64) {
    produce_to(broker, 0, key, timestamp_ms);
}

pub(crate) fn produce_to(broker: &EmbeddedBroker, partition: i32, key: &str, timestamp_ms: i64) {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", broker.bootstrap_servers())
        .create()
        .unwrap();
    let record = BaseRecord::to(TOPIC)
        .partition(partition)
        .key(key)
        .payload("v")
        .timestamp(timestamp_ms);
    producer.send(record).map_err(|(error, _)| error).unwrap();
    producer.flush(Duration::from_secs(30)).unwrap();
}

// C055
#[test]
fn a_copy_is_one_whatever_time_it_and_its_first_carry() {
    let (broker, dir) = (broker(1), tempfile::tempdir().unwrap());
    let times = [1, SECONDS, YEAR_2100_MS, MICROSECONDS, i64::MAX];
    for (n, timestamp_ms) in times.into_iter().enumerate() {
        let key = format!("order-{n}");
        produce_at(&broker, &key, timestamp_ms);
        produce_at(&broker, &key, timestamp_ms);
        // Its copy may carry another one: it was sent later.
        produce_at(&broker, &key, times[(n + 1) % times.len()]);
    }
    let (effects, report) = consume(builder(&broker), sled(dir.path()), times.len());
    assert_eq!(effects.len(), times.len());
    // The last copies may lie behind the stop; the next start tells.
    produce_at(&broker, "end", 1);
    let (effects, again) = consume(builder(&broker), sled(dir.path()), 1);
    assert_eq!(effects, [format!("0:{}:end=v", 3 * times.len())]);
    let counted = report.counts.duplicate + again.counts.duplicate;
    assert_eq!(counted, 2 * times.len() as u64);
}

// C055, C056
#[test]
fn a_known_key_stays_known_however_old_its_record_says_it_is() {
    let (broker, store) = (broker(1), Scripted::new());
    produce_at(&broker, "old", 1);
    produce_at(&broker, "new", YEAR_2100_MS);
    consume(builder(&broker), store.clone(), 2);
    produce_at(&broker, "old", YEAR_2100_MS);
    produce_at(&broker, "new", 1);
    produce_at(&broker, "end", SECONDS);
    let (effects, report) = consume(builder(&broker), store, 1);
    assert_eq!(effects, ["0:4:end=v"]);
    assert_eq!(report.counts.duplicate, 2);
}
