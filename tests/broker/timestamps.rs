//! Times that producers made up, on a broker that looks at them.

use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use crate::broker::DEADLINE;
use crate::history::History;
use crate::member::{Member, builder, config, sled};
use crate::{admin, broker, feed};

const YEAR_2100_MS: i64 = 4_102_444_800_000;

fn send(producer: &BaseProducer, topic: &str, key: &str, timestamp_ms: i64) {
    let record = BaseRecord::to(topic)
        .partition(0)
        .key(key)
        .payload("v")
        .timestamp(timestamp_ms);
    producer.send(record).map_err(|(error, _)| error).unwrap();
}

// C055, C092
#[test]
fn records_of_any_time_are_one_with_their_copies_where_the_broker_takes_them() {
    let Some(kafka) = broker::shared() else {
        return;
    };
    // Newer brokers refuse by default what is more than an hour ahead; deletion by time would take
    // what is older than a week.
    let any_time = i64::MAX.to_string();
    let settings = [
        ("message.timestamp.after.max.ms", any_time.as_str()),
        ("retention.ms", "-1"),
    ];
    let topic = admin::topic_with(&kafka, "any-time", &settings);
    let producer = feed::producer(kafka.bootstrap(), &[]);
    for (key, timestamp_ms) in [("old", 1), ("future", YEAR_2100_MS), ("now", 0)] {
        send(&producer, &topic, key, timestamp_ms);
        send(&producer, &topic, key, timestamp_ms);
    }
    feed::produce(&kafka, &topic, 0, &["end"]);
    producer.flush(DEADLINE).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let history = History::default();
    let config = config(&kafka, &topic);
    let running = Member::start("a", builder(config, &topic), sled(dir.path()), &history);
    running.wait(4);
    broker::wait_caught_up(&kafka, &topic, &topic);
    running.stop();
    let keys = ["old", "future", "now", "end"].map(str::to_owned);
    history.assert_each_once(&keys);
}
