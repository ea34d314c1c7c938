//! Records that no client library would send: a produce request made by hand.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use idempotent_consumer::testkit::EmbeddedBroker;

use crate::support::TOPIC;

/// A record whose every part is bytes.
#[derive(Clone, Copy, Default)]
pub(crate) struct RawRecord<'a> {
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) headers: &'a [(&'a [u8], Option<&'a [u8]>)],
    /// Headers that are announced and not there.
    pub(crate) missing_headers: usize,
}

/// Produces to partition 0 and waits for the answer.
pub(crate) fn produce_raw(broker: &EmbeddedBroker, records: &[RawRecord<'_>]) {
    send(broker, &batch(records));
}

/// The same with one bit that is not as it was when the checksum was made.
pub(crate) fn produce_damaged(broker: &EmbeddedBroker, records: &[RawRecord<'_>]) {
    let mut batch = batch(records);
    *batch.last_mut().unwrap() ^= 0x10;
    send(broker, &batch);
}

fn send(broker: &EmbeddedBroker, batch: &[u8]) {
    let mut body = Vec::new();
    // No transaction, acks of all, a limit of 10 s, one topic, one partition.
    body.extend_from_slice(&(-1_i16).to_be_bytes());
    body.extend_from_slice(&(-1_i16).to_be_bytes());
    body.extend_from_slice(&10_000_i32.to_be_bytes());
    body.extend_from_slice(&1_i32.to_be_bytes());
    push_string(&mut body, TOPIC);
    body.extend_from_slice(&1_i32.to_be_bytes());
    body.extend_from_slice(&0_i32.to_be_bytes());
    body.extend_from_slice(&length(batch).to_be_bytes());
    body.extend_from_slice(batch);

    let mut request = Vec::new();
    // Produce, version 7, a number for the answer.
    request.extend_from_slice(&0_i16.to_be_bytes());
    request.extend_from_slice(&7_i16.to_be_bytes());
    request.extend_from_slice(&1_i32.to_be_bytes());
    push_string(&mut request, "raw");
    request.extend_from_slice(&body);

    let mut stream = TcpStream::connect(broker.bootstrap_servers()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    stream.write_all(&length(&request).to_be_bytes()).unwrap();
    stream.write_all(&request).unwrap();
    let mut size = [0; 4];
    stream.read_exact(&mut size).unwrap();
    let mut answer = vec![0; usize::try_from(i32::from_be_bytes(size)).unwrap()];
    stream.read_exact(&mut answer).unwrap();
    // Behind the number, the counts of topics and partitions, the topic and the partition.
    let code = 4 + 4 + 2 + TOPIC.len() + 4 + 4;
    assert_eq!(answer[code..code + 2], [0, 0], "refused: {answer:?}");
}

/// A record batch of version 2.
fn batch(records: &[RawRecord<'_>]) -> Vec<u8> {
    let count = i32::try_from(records.len()).unwrap();
    let mut checked = Vec::new();
    checked.extend_from_slice(&0_i16.to_be_bytes());
    checked.extend_from_slice(&(count - 1).to_be_bytes());
    for timestamp_ms in [1_i64, 1] {
        checked.extend_from_slice(&timestamp_ms.to_be_bytes());
    }
    // No idempotent producer.
    checked.extend_from_slice(&(-1_i64).to_be_bytes());
    checked.extend_from_slice(&(-1_i16).to_be_bytes());
    checked.extend_from_slice(&(-1_i32).to_be_bytes());
    checked.extend_from_slice(&count.to_be_bytes());
    for (n, record) in records.iter().enumerate() {
        let record = encode(n, record);
        push_varint(&mut checked, record.len());
        checked.extend_from_slice(&record);
    }
    let mut batch = Vec::new();
    batch.extend_from_slice(&0_i64.to_be_bytes());
    // Epoch, version and checksum come before what is checked.
    batch.extend_from_slice(&(length(&checked) + 4 + 1 + 4).to_be_bytes());
    batch.extend_from_slice(&0_i32.to_be_bytes());
    batch.push(2);
    batch.extend_from_slice(&crc32c(&checked).to_be_bytes());
    batch.extend_from_slice(&checked);
    batch
}

fn encode(n: usize, record: &RawRecord<'_>) -> Vec<u8> {
    // No attributes, the batch's own time.
    let mut bytes = vec![0, 0];
    push_varint(&mut bytes, n);
    push_bytes(&mut bytes, record.key);
    push_bytes(&mut bytes, record.value);
    push_varint(&mut bytes, record.headers.len() + record.missing_headers);
    for (name, value) in record.headers {
        push_bytes(&mut bytes, Some(name));
        push_bytes(&mut bytes, *value);
    }
    bytes
}

fn push_bytes(to: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            push_varint(to, bytes.len());
            to.extend_from_slice(bytes);
        }
        // -1 in zigzag.
        None => to.push(1),
    }
}

/// Kafka's varints are zigzag; lengths are never negative.
fn push_varint(to: &mut Vec<u8>, n: usize) {
    let mut n = n << 1;
    while n >= 0x80 {
        to.push(u8::try_from(n & 0x7f).unwrap() | 0x80);
        n >>= 7;
    }
    to.push(u8::try_from(n).unwrap());
}

fn push_string(to: &mut Vec<u8>, text: &str) {
    to.extend_from_slice(&i16::try_from(text.len()).unwrap().to_be_bytes());
    to.extend_from_slice(text.as_bytes());
}

fn length(bytes: &[u8]) -> i32 {
    i32::try_from(bytes.len()).unwrap()
}

fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            let odd = crc & 1 == 1;
            crc >>= 1;
            if odd {
                crc ^= 0x82f6_3b78;
            }
        }
    }
    !crc
}
