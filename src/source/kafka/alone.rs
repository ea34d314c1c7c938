//! Reading and nothing else: what the consumer's own reading costs, for comparisons.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{ClientConfig, KafkaSource};
use crate::audit;
use crate::engine::Committed;
use crate::record::TopicPartition;
use crate::source::{Listener, Offered, Reader, Source as _, SourceError, Start};

const POLL_WAIT: Duration = Duration::from_millis(5);
const READ_WAIT: Duration = Duration::from_millis(50);
const READ_RECORDS_MAX: usize = 2_000;
const LEAVE_LIMIT: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Counted {
    stop: AtomicBool,
    records: AtomicU64,
    begun: Mutex<Option<Instant>>,
    /// When the last of those that were asked for came.
    ended: Mutex<Option<Instant>>,
    failed: Mutex<Option<SourceError>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Dropping {
    counted: Arc<Counted>,
    records: u64,
}

impl Listener for Dropping {
    fn offered(&self, partitions: &[Offered]) -> Vec<Start> {
        partitions.iter().map(|_| Start::Committed).collect()
    }

    fn assigned(&self, readers: Vec<(TopicPartition, Box<dyn Reader>)>) {
        for (_, mut reader) in readers {
            let (counted, limit) = (Arc::clone(&self.counted), self.records);
            let thread = std::thread::spawn(move || {
                while !counted.stop.load(Ordering::Relaxed) {
                    match reader.read(READ_RECORDS_MAX, READ_WAIT) {
                        Ok(batch) if batch.len() > 0 => {
                            held(&counted.begun).get_or_insert_with(Instant::now);
                            let came = batch.len() as u64;
                            drop(batch);
                            let before = counted.records.fetch_add(came, Ordering::Relaxed);
                            if before + came >= limit {
                                held(&counted.ended).get_or_insert_with(Instant::now);
                            }
                        }
                        Ok(_) => {}
                        Err(error) => {
                            held(&counted.failed).get_or_insert(error);
                            return;
                        }
                    }
                }
            });
            held(&self.counted.threads).push(thread);
        }
    }

    fn revoked(&self, _: &[TopicPartition], _: bool) -> Vec<Committed> {
        self.counted.stop.store(true, Ordering::Relaxed);
        for thread in held(&self.counted.threads).drain(..) {
            // A panic there was printed there.
            let _ = thread.join();
        }
        Vec::new()
    }
}

/// Reads `records` records of `topics` as the consumer reads them, with its settings, and drops
/// them. Says how long it took from the first to the last.
///
/// # Errors
/// Where the cluster cannot be read, or where not so many records came within `limit`.
pub fn read_and_drop(
    config: &ClientConfig,
    topics: &[&str],
    records: u64,
    limit: Duration,
) -> Result<Duration, SourceError> {
    let mut config = config.clone();
    audit::complete_consumer(&mut config);
    let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
    let mut source = KafkaSource::new(&config, topics)?;
    let counted = Arc::new(Counted::default());
    source.join(Arc::new(Dropping {
        counted: Arc::clone(&counted),
        records,
    }))?;
    let end = Instant::now() + limit;
    let took = loop {
        source.poll(POLL_WAIT)?;
        if let Some(error) = held(&counted.failed).take() {
            break Err(error);
        }
        let times = (*held(&counted.begun), *held(&counted.ended));
        if let (Some(begun), Some(ended)) = times {
            break Ok(ended.duration_since(begun));
        }
        if Instant::now() >= end {
            break Err(SourceError::Fatal {
                message: format!(
                    "{} of {records} records came within {limit:?}",
                    counted.records.load(Ordering::Relaxed)
                ),
                remedy: "look whether the topics hold so many".to_owned(),
            });
        }
    };
    counted.stop.store(true, Ordering::Relaxed);
    source.leave(&[], LEAVE_LIMIT)?;
    took
}
