//! Commits to the group, with their answers.
//!
//! rdkafka 0.39 never calls `commit_callback` for an asynchronous commit: librdkafka answers where
//! a callback is configured or a queue is named, and rdkafka does neither. A commit without an
//! answer can be refused without anybody noticing, so the queue is named here. Waiting on it is
//! bounded too, which a synchronous commit is not.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::bindings as sys;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::types::RDKafkaRespErr;

use super::context::Context;
use crate::engine::Committed;
use crate::record::{NextOffset, TopicPartition};

/// One request at a time, so that none comes after a newer one.
pub(super) struct Commits(Mutex<Sent>);

/// What was sent without waiting.
struct Sent {
    queue: Queue,
    /// The answer that came while another request had to go out at once.
    overtaken: Option<KafkaResult<Vec<Committed>>>,
}

struct Queue {
    raw: NonNull<sys::rd_kafka_queue_t>,
    /// The queue must not outlive its client.
    consumer: Arc<BaseConsumer<Context>>,
    waiting: bool,
}

// SAFETY: librdkafka's queues are locked inside and may be used from any thread.
unsafe impl Send for Queue {}

impl Commits {
    pub(super) fn new(consumer: Arc<BaseConsumer<Context>>) -> KafkaResult<Self> {
        Ok(Self(Mutex::new(Sent {
            queue: Queue::new(consumer)?,
            overtaken: None,
        })))
    }

    /// Sends positions; the answer comes by [`answer`](Commits::answer), and before it nothing
    /// else may be sent here.
    pub(super) fn send(&self, positions: &[Committed]) -> KafkaResult<()> {
        self.lock().queue.send(positions)
    }

    /// The answer to what was sent, if it comes within `wait`: what was committed, or the first
    /// refusal. `None` too where nothing was sent.
    pub(super) fn answer(&self, wait: Duration) -> Option<KafkaResult<Vec<Committed>>> {
        let mut sent = self.lock();
        sent.overtaken.take().or_else(|| sent.queue.answer(wait))
    }

    /// Sends positions and waits for the answer, for at most `limit`. What was sent before is
    /// waited for first, and its answer stays for whoever asks for it.
    pub(super) fn commit(&self, positions: &[Committed], limit: Duration) -> KafkaResult<()> {
        if positions.is_empty() {
            return Ok(());
        }
        let end = Instant::now() + limit;
        let mut sent = self.lock();
        // Half of the time at most: its order matters, since librdkafka may send it again, but an
        // answer that never comes must not cost this request its own.
        if let Some(answer) = sent.queue.answer(limit / 2) {
            sent.overtaken = Some(answer);
        }
        // A queue of its own: a late answer to the other request cannot be taken for this one's.
        let mut own = Queue::new(Arc::clone(&sent.queue.consumer))?;
        own.send(positions)?;
        match own.answer(end.saturating_duration_since(Instant::now())) {
            Some(answer) => answer.map(drop),
            None => Err(KafkaError::ConsumerCommit(
                RDKafkaErrorCode::OperationTimedOut,
            )),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Sent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn new(consumer: Arc<BaseConsumer<Context>>) -> KafkaResult<Self> {
        // SAFETY: the client is alive, and stays so while `consumer` is held.
        let raw = unsafe { sys::rd_kafka_queue_new(consumer.client().native_ptr()) };
        let raw = NonNull::new(raw)
            .ok_or_else(|| KafkaError::ClientCreation("no queue for commits".to_owned()))?;
        Ok(Self {
            raw,
            consumer,
            waiting: false,
        })
    }

    fn send(&mut self, positions: &[Committed]) -> KafkaResult<()> {
        let mut list = TopicPartitionList::with_capacity(positions.len());
        for Committed { partition, next } in positions {
            let next = Offset::Offset(next.get());
            list.add_partition_offset(partition.topic(), partition.partition(), next)?;
        }
        // SAFETY: client and queue are alive; the list is copied by the call. No callback: the
        // answer comes as an event.
        let code = unsafe {
            sys::rd_kafka_commit_queue(
                self.consumer.client().native_ptr(),
                list.ptr(),
                self.raw.as_ptr(),
                None,
                ptr::null_mut(),
            )
        };
        check(code)?;
        self.waiting = true;
        Ok(())
    }

    fn answer(&mut self, wait: Duration) -> Option<KafkaResult<Vec<Committed>>> {
        if !self.waiting {
            return None;
        }
        let wait_ms = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: the queue is alive; null where nothing came.
        let event = unsafe { sys::rd_kafka_queue_poll(self.raw.as_ptr(), wait_ms) };
        let event = Event(NonNull::new(event)?);
        self.waiting = false;
        Some(event.answer())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the reference from `new`, given back once; the client is still alive.
        unsafe { sys::rd_kafka_queue_destroy(self.raw.as_ptr()) }
    }
}

/// An event, destroyed once it was read.
struct Event(NonNull<sys::rd_kafka_event_t>);

impl Event {
    fn answer(&self) -> KafkaResult<Vec<Committed>> {
        // SAFETY: the event is alive until `drop`.
        check(unsafe { sys::rd_kafka_event_error(self.0.as_ptr()) })?;
        // SAFETY: as above; the list belongs to the event, null where it has none.
        let list = unsafe { sys::rd_kafka_event_topic_partition_list(self.0.as_ptr()).as_ref() };
        let elements = match list {
            Some(list) if !list.elems.is_null() => {
                // SAFETY: librdkafka keeps `cnt` elements there, for as long as the event lives.
                unsafe {
                    std::slice::from_raw_parts(list.elems, usize::try_from(list.cnt).unwrap_or(0))
                }
            }
            _ => &[],
        };
        let mut committed = Vec::with_capacity(elements.len());
        for element in elements {
            // A request may succeed while one of its partitions is refused.
            check(element.err)?;
            // SAFETY: a NUL-terminated string in every element.
            let topic = unsafe { CStr::from_ptr(element.topic) }.to_string_lossy();
            if let Some(next) = NextOffset::new(element.offset) {
                let partition = TopicPartition::new(topic.as_ref(), element.partition);
                committed.push(Committed { partition, next });
            }
        }
        Ok(committed)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: owned, and destroyed once.
        unsafe { sys::rd_kafka_event_destroy(self.0.as_ptr()) }
    }
}

fn check(code: RDKafkaRespErr) -> KafkaResult<()> {
    match code {
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
        code => Err(KafkaError::ConsumerCommit(code.into())),
    }
}
