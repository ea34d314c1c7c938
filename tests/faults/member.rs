//! A member in a process of its own: this test binary, run again.

use std::env;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use idempotent_consumer::store::SledStore;
use idempotent_consumer::testkit::history::{Effect, Reporter};
use idempotent_consumer::{
    ClientConfig, Delivery, HandlerResult, IdempotentConsumer, Ordering, key,
};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::chance::Chance;
use crate::protocol::Config;

pub(crate) const ORDERS: &str = "IDEMPOTENT_CONSUMER_TEST_ORDERS";

/// What a member is to do.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Orders {
    /// Members of one name have one store.
    pub(crate) name: String,
    pub(crate) store: PathBuf,
    pub(crate) collector: SocketAddr,
    pub(crate) topic: String,
    pub(crate) config: Config,
    pub(crate) in_flight_max: usize,
    /// Whether several records of a partition are handled at once, and end in any order.
    pub(crate) at_once: bool,
    /// The handler of one in so many records fails at first.
    pub(crate) failing_one_in: u64,
    pub(crate) seed: u64,
}

/// So long a handler may take, between the two ends of its effect.
const HANDLING: Duration = Duration::from_micros(400);
/// The same where others are handled meanwhile.
const HANDLING_AT_ONCE: Duration = Duration::from_millis(5);
const AT_ONCE_MAX: usize = 12;

/// What the child does. Does nothing in a normal run of the tests.
#[test]
fn role() {
    let Ok(orders) = env::var(ORDERS) else {
        return;
    };
    let orders: Orders = serde_json::from_str(&orders).unwrap();
    let _ = tracing_subscriber::fmt()
        .with_env_filter("idempotent_consumer=info")
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .try_init();
    let reporter = Reporter::connect(orders.collector, &orders.name).unwrap();
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    std::thread::spawn(move || {
        // Until the parent lets go.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stopped.cancel();
    });
    let consumer = consumer(&orders);
    let chance = Mutex::new(Chance::from(orders.seed));
    let at_work = orders.clone();
    let handler = async move |record: &Delivery<'_>, _: &mut _| {
        handle(record, &reporter, &chance, &at_work).await
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    match runtime.block_on(consumer.run(handler, stop)) {
        Ok(report) => eprintln!("ended in order: {report:?}"),
        Err(error) => {
            // The last line of its log, and no panic: whoever started it reads this.
            eprintln!("ended: {error}");
            std::process::exit(1);
        }
    }
}

fn consumer(orders: &Orders) -> IdempotentConsumer {
    let mut config = ClientConfig::new();
    for (key, value) in &orders.config {
        config.set(key, value);
    }
    let mut builder = IdempotentConsumer::builder(config)
        .topics([&orders.topic])
        .key(key::record_key())
        .uncommitted_records_max(orders.in_flight_max)
        .offset_interval(Duration::from_millis(100));
    if orders.at_once {
        builder = builder.ordering(Ordering::Key).max_concurrency(AT_ONCE_MAX);
    }
    builder
        .build(SledStore::open(&orders.store).unwrap())
        .unwrap()
}

async fn handle(
    record: &Delivery<'_>,
    reporter: &Reporter,
    chance: &Mutex<Chance>,
    orders: &Orders,
) -> HandlerResult {
    let open = reporter.begin(&Effect {
        key: String::from_utf8_lossy(record.key().unwrap_or_default()).into_owned(),
        partition: record.partition(),
        offset: record.offset(),
        token: record.token(),
        in_doubt: record.in_doubt(),
        attempt: record.attempt(),
    })?;
    let limit = if orders.at_once {
        HANDLING_AT_ONCE
    } else {
        HANDLING
    };
    let (takes, fails) = {
        let mut chance = chance.lock().unwrap();
        let fails = record.attempt() == 1 && chance.one_in(orders.failing_one_in);
        (chance.time_below(limit), fails)
    };
    if orders.at_once {
        tokio::time::sleep(takes).await;
    } else {
        // A timer would be a millisecond late.
        std::thread::sleep(takes);
    }
    if fails {
        return Err("the other side is busy".into());
    }
    open.applied()?;
    Ok(())
}
