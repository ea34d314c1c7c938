//! Our consumer, with a handler that does nothing.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use idempotent_consumer::key;
use idempotent_consumer::store::{Durability, MemoryStore, SledStore, Store};
use idempotent_consumer::{Delivery, EffectStore, Effects, Error, IdempotentConsumer, Report};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::RUN_LIMIT;
use crate::support::{self, Outcome};
use crate::topic::Topic;

/// Between two looks at the store: a thousandth of the shortest run.
const LOOK_EVERY: Duration = Duration::from_millis(1);

pub(crate) async fn on_disk(topic: &Topic, durability: Durability) -> Outcome<Duration> {
    let directory = support::on_disk()?;
    let options = SledStore::options().durability(durability);
    run(topic, options.open(directory.path().join("store"))?).await
}

pub(crate) async fn in_memory(topic: &Topic) -> Outcome<Duration> {
    run(topic, MemoryStore::new()).await
}

/// Consumes the topic once; from the first record to the last mark that is as durable as the
/// store makes it.
async fn run(topic: &Topic, store: impl EffectStore<Effects = Effects>) -> Outcome<Duration> {
    let store = Arc::new(store);
    let consumer = IdempotentConsumer::builder(topic.fresh_group())
        .topics([topic.name.as_str()])
        .key(key::record_key())
        .build(Arc::clone(&store))?;
    let begun = Arc::new(OnceLock::new());
    let first = Arc::clone(&begun);
    let handler = async move |_: &Delivery<'_>, _: &mut Effects| {
        first.get_or_init(Instant::now);
        Ok(())
    };
    let shutdown = CancellationToken::new();
    let consuming = tokio::spawn(consumer.run(handler, shutdown.clone()));
    finish(topic, &*store, &begun, consuming, &shutdown).await
}

/// Waits until all is durable and ends the consumer; says how long it took from `begun` on.
pub(crate) async fn finish(
    topic: &Topic,
    store: &impl Store,
    begun: &OnceLock<Instant>,
    consuming: JoinHandle<Result<Report, Error>>,
    shutdown: &CancellationToken,
) -> Outcome<Duration> {
    let limit = Instant::now() + RUN_LIMIT;
    while durable(store) < topic.records && !consuming.is_finished() && Instant::now() < limit {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let ended = Instant::now();
    shutdown.cancel();
    let report = consuming.await??;
    if usize::try_from(report.counts.new) != Ok(topic.keys) {
        return Err(format!("{} records were handled: {report:?}", report.counts.new).into());
    }
    let begun = begun.get().ok_or("nothing was handled")?;
    Ok(ended.duration_since(*begun))
}

/// Records below the store's heads: the topic's offsets begin at 0 and have no gaps.
fn durable(store: &impl Store) -> usize {
    let heads = store.heads();
    let heads = heads.iter().filter_map(|(_, head)| head.as_ref());
    heads
        .map(|head| usize::try_from(head.next.get()).unwrap_or(0))
        .sum()
}
