//! The loop that people write: `recv`, and drop what came.

use std::future::Future;
use std::time::{Duration, Instant};

use rdkafka::consumer::{Consumer as _, DefaultConsumerContext, StreamConsumer};
use rdkafka::util::AsyncRuntime;

use crate::RUN_LIMIT;
use crate::support::Outcome;
use crate::topic::Topic;

/// What rdkafka's feature `tokio` would bring; this crate does without it.
struct Tokio;

impl AsyncRuntime for Tokio {
    type Delay = tokio::time::Sleep;

    fn spawn<T: Future<Output = ()> + Send + 'static>(task: T) {
        tokio::spawn(task);
    }

    fn delay_for(duration: Duration) -> Self::Delay {
        tokio::time::sleep(duration)
    }
}

/// Reads the topic once; from the first record to the last.
pub(crate) async fn run(topic: &Topic, settings: &[(&str, &str)]) -> Outcome<Duration> {
    let mut config = topic.fresh_group();
    for (setting, value) in settings {
        config.set(*setting, *value);
    }
    let consumer: StreamConsumer<DefaultConsumerContext, Tokio> = config.create()?;
    consumer.subscribe(&[&topic.name])?;
    let reading = async {
        consumer.recv().await?;
        let begun = Instant::now();
        for _ in 1..topic.records {
            consumer.recv().await?;
        }
        Ok(begun.elapsed())
    };
    tokio::time::timeout(RUN_LIMIT, reading).await?
}
