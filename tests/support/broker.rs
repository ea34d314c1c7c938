//! The one broker of this binary.

#![allow(
    dead_code,
    reason = "two test binaries compile this file, and each uses a part of it"
)]

use std::ops::Deref;
use std::sync::{
    LazyLock, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use std::time::{Duration, Instant};

use idempotent_consumer::testkit::{FaultProxy, Faults};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::support::kafka::Kafka;
use crate::support::skip::cannot_run;

/// For anything that a loaded machine may take its time for.
pub(crate) const DEADLINE: Duration = Duration::from_secs(180);

static KAFKA: LazyLock<Option<Kafka>> = LazyLock::new(|| Kafka::start_with(crate::BROKER_SETTINGS));
/// Held for writing by the test that restarts the broker under everybody.
static TURN: RwLock<()> = RwLock::new(());

/// The broker, for as long as a test uses it.
pub(crate) struct Broker<G> {
    kafka: &'static Kafka,
    _turn: G,
}

pub(crate) type SharedBroker = Broker<RwLockReadGuard<'static, ()>>;

/// The broker, beside other tests; `None` (said on standard error) where there is no Kafka.
pub(crate) fn shared() -> Option<SharedBroker> {
    let turn = TURN
        .read()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let kafka = KAFKA.as_ref()?;
    Some(Broker { kafka, _turn: turn })
}

/// The broker, alone; `None` (said on standard error) also where it is not ours to stop.
pub(crate) fn alone() -> Option<Broker<RwLockWriteGuard<'static, ()>>> {
    let turn = TURN
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let kafka = KAFKA.as_ref()?;
    if !kafka.is_ours() {
        cannot_run("KAFKA_BOOTSTRAP's broker is not ours to stop.");
        return None;
    }
    Some(Broker { kafka, _turn: turn })
}

impl<G> Deref for Broker<G> {
    type Target = Kafka;

    fn deref(&self) -> &Kafka {
        self.kafka
    }
}

/// The shortest session that the broker allows.
pub(crate) fn short_session_ms(kafka: &Kafka) -> &'static str {
    if kafka.is_ours() { "1500" } else { "6000" }
}

/// Waits for a condition.
pub(crate) fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < end, "waited {DEADLINE:?} for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What the group has committed, in partition order; `None` where it has nothing.
pub(crate) fn committed(kafka: &Kafka, group: &str, topic: &str) -> Vec<Option<i64>> {
    let client: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", kafka.bootstrap())
        .set("group.id", group)
        .create()
        .unwrap();
    let metadata = client.fetch_metadata(Some(topic), DEADLINE).unwrap();
    let mut asked = TopicPartitionList::new();
    for partition in metadata.topics()[0].partitions() {
        asked.add_partition(topic, partition.id());
    }
    // Right after a restart the broker does not coordinate the group yet.
    let end = Instant::now() + DEADLINE;
    let answer = loop {
        match client.committed_offsets(asked.clone(), DEADLINE) {
            Ok(answer) => break answer,
            Err(error) => assert!(Instant::now() < end, "{group}: {error}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let mut offsets: Vec<_> = answer
        .elements()
        .iter()
        .map(|element| (element.partition(), element.offset()))
        .collect();
    offsets.sort_by_key(|(partition, _)| *partition);
    offsets
        .into_iter()
        .map(|(_, offset)| match offset {
            Offset::Offset(next) => Some(next),
            _ => None,
        })
        .collect()
}

/// The state of a classic group and the number of its members; `None` where the broker has no
/// answer now.
pub(crate) fn group_state(kafka: &Kafka, group: &str) -> Option<(String, usize)> {
    let client: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", kafka.bootstrap())
        .create()
        .unwrap();
    let list = client.fetch_group_list(Some(group), DEADLINE).ok()?;
    let group = list.groups().first()?;
    Some((group.state().to_owned(), group.members().len()))
}

/// Waits until the group has committed all that is in the topic.
pub(crate) fn wait_caught_up(kafka: &Kafka, group: &str, topic: &str) {
    let ends = kafka.end_offsets(topic);
    let end = Instant::now() + DEADLINE;
    loop {
        let committed = committed(kafka, group, topic);
        let reached = committed.iter().zip(&ends);
        if reached.clone().all(|(next, end)| next.unwrap_or(0) == *end) {
            return;
        }
        assert!(
            Instant::now() < end,
            "{group} stands at {committed:?} of {ends:?}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// There is one address behind which the broker can be reached through a proxy.
static ONE_PROXY: Mutex<()> = Mutex::new(());

/// A proxy before the broker, and the turn to use it; `None` where there cannot be one.
pub(crate) fn proxy(kafka: &Kafka) -> Option<(MutexGuard<'static, ()>, FaultProxy)> {
    let Some((listen, upstream)) = kafka.proxied() else {
        cannot_run("KAFKA_PROXIED and KAFKA_PROXIED_UPSTREAM are not set.");
        return None;
    };
    let turn = ONE_PROXY.lock().unwrap_or_else(PoisonError::into_inner);
    let proxy = FaultProxy::start(listen, upstream, Faults::default()).unwrap();
    // In this order: names are dropped from the last to the first, and the address must be free
    // before the next one has its turn.
    Some((turn, proxy))
}
