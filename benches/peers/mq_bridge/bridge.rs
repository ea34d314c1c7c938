//! mq-bridge as a contender: a route from the topic to a handler, set up as its documents have it.

use std::sync::Arc;

use async_trait::async_trait;
use mq_bridge::models::Route;
use mq_bridge::traits::Handler;
use mq_bridge::{CanonicalMessage, Handled, HandlerError};
use peers::Outcome;
use peers::job::{Job, Progress, SESSION_TIMEOUT_MS};
use peers::keys;
use peers::race::wait_stop;
use serde_json::{Value, json};

/// How it remembers what it has seen.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Memory {
    /// Not at all.
    None,
    /// In sled, as it comes.
    Sled,
    /// In sled, which is flushed before each acknowledgement.
    Durable,
}

struct Count(Arc<Progress>);

impl Count {
    fn count(&self, message: &CanonicalMessage) -> Result<Handled, HandlerError> {
        let number = keys::number(&message.message_id.to_be_bytes());
        let counted = self.0.handle(number);
        counted.map_err(|error| HandlerError::NonRetryable(error.into()))?;
        Ok(Handled::Ack)
    }
}

#[async_trait]
impl Handler for Count {
    async fn handle(&self, message: CanonicalMessage) -> Result<Handled, HandlerError> {
        self.count(&message)
    }

    /// Without a future for each message.
    async fn handle_many(
        &self,
        messages: Vec<CanonicalMessage>,
    ) -> Vec<Result<Handled, HandlerError>> {
        let handled = messages.iter().map(|message| self.count(message));
        handled.collect()
    }
}

pub(crate) async fn consume(job: &Job, memory: Memory) -> Outcome<()> {
    let progress = Arc::new(Progress::of(job)?);
    let route: Route = serde_json::from_value(route(job, memory))?;
    let running = route.with_handler(Count(progress)).run("bench").await?;
    tokio::task::spawn_blocking(wait_stop).await?;
    running.stop().await;
    Ok(running.join().await?)
}

fn route(job: &Job, memory: Memory) -> Value {
    let mut input = json!({
        "kafka": {
            "url": job.bootstrap,
            "topic": job.topic,
            "group_id": job.group,
            "consumer_options": [
                ["session.timeout.ms", SESSION_TIMEOUT_MS],
                // librdkafka waits a second by default where its queue was full, and reads 3.4
                // times slower. This crate's consumer sets the same.
                ["fetch.queue.backoff.ms", "10"],
            ],
        },
    });
    let durable = match memory {
        Memory::None => None,
        Memory::Sled => Some(false),
        Memory::Durable => Some(true),
    };
    if let Some(durable) = durable {
        let path = job.directory.join("store");
        // Without a `key` the identity is the message's id, which is the record's key where that
        // has 16 bytes: the cheapest way to it, and the same identity as the others'.
        input["middlewares"] = json!([{
            "deduplication": {
                "store": format!("sled://{}?durable={durable}", path.display()),
                "ttl_seconds": 86_400,
            },
        }]);
    }
    json!({ "input": input, "output": { "null": null } })
}
