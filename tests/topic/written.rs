//! What Kafka's console consumer reads of the output, with `isolation.level=read_committed`.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use std::time::Duration;

use crate::broker::DEADLINE;
use crate::feed;
use crate::support::kafka::Kafka;

/// What nobody else sends: behind it in its partition there is nothing.
const END: &str = "the-end";

/// Between the parts of a record, and behind each: a letter's headers hold numbers, and so any byte,
/// a newline or a tab among them.
const PART: &str = "<part>";
const RECORD: &str = "<record>";

/// One record as the console consumer prints it; what is null it prints as `null`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) timestamp: String,
    pub(crate) partition: i32,
    pub(crate) headers: String,
    pub(crate) key: String,
    pub(crate) value: String,
}

/// Reads a topic to its end, which must be behind `count` records: no fewer and no more. Nobody may
/// write to it any more.
pub(crate) fn all(kafka: &Kafka, topic: &str, count: usize) -> Vec<Line> {
    let partitions = kafka.end_offsets(topic).len();
    let producer = feed::producer(kafka.bootstrap(), &[]);
    for partition in 0..i32::try_from(partitions).unwrap() {
        feed::send(&producer, topic, partition, END, END.as_bytes());
    }
    producer.flush(DEADLINE).unwrap();
    let output = kafka.try_tool(
        "kafka-console-consumer.sh",
        &[
            "--topic",
            topic,
            "--from-beginning",
            "--max-messages",
            &(count + partitions).to_string(),
            // It would wait for records that are missing.
            "--timeout-ms",
            "30000",
            "--command-property",
            "isolation.level=read_committed",
            "--formatter-property",
            "print.timestamp=true",
            "--formatter-property",
            "print.partition=true",
            "--formatter-property",
            "print.headers=true",
            "--formatter-property",
            "print.key=true",
            "--formatter-property",
            &format!("key.separator={PART}"),
            "--formatter-property",
            &format!("line.separator={RECORD}"),
        ],
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // A letter's headers are no text.
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<_> = text.split_terminator(RECORD).map(line).collect();
    assert_eq!(lines.len(), count + partitions, "records and ends");
    let (ends, records): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| line.key == END);
    // With one record too many, one end would not have been reached.
    assert_eq!(ends.len(), partitions, "more than {count} records");
    records
}

fn line(text: &str) -> Line {
    let mut parts = text.split(PART);
    let mut next = || parts.next().unwrap_or_else(|| panic!("{text:?}"));
    let timestamp = next().to_owned();
    let partition = next().strip_prefix("Partition:").unwrap().parse().unwrap();
    Line {
        timestamp,
        partition,
        headers: next().to_owned(),
        key: next().to_owned(),
        value: next().to_owned(),
    }
}

/// A record to send.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sent<'a> {
    pub(crate) partition: i32,
    /// In milliseconds since 1970; `None` is now.
    pub(crate) timestamp_ms: Option<i64>,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) headers: &'a [(&'a str, Option<&'a str>)],
}

/// Hands a record to a producer, which may be full for a while.
pub(crate) fn send(producer: &BaseProducer, topic: &str, sent: &Sent<'_>) {
    let headers = sent.headers.iter();
    let headers = headers.fold(OwnedHeaders::new(), |headers, (key, value)| {
        headers.insert(Header { key, value: *value })
    });
    let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic)
        .partition(sent.partition)
        .headers(headers);
    record.timestamp = sent.timestamp_ms;
    record.key = sent.key;
    record.payload = sent.value;
    loop {
        match producer.send(record) {
            Ok(()) => return,
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), again)) => {
                record = again;
                producer.poll(Duration::from_millis(10));
            }
            Err((error, _)) => panic!("producing: {error}"),
        }
    }
}

/// Sends records and waits until they are there.
pub(crate) fn send_all(kafka: &Kafka, topic: &str, sent: &[Sent<'_>]) {
    let producer = feed::producer(kafka.bootstrap(), &[]);
    for one in sent {
        send(&producer, topic, one);
    }
    producer.flush(DEADLINE).unwrap();
}
