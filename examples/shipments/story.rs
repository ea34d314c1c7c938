//! Plays the broker's side: sends the orders, starts the service, kills it, sets the group back.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use idempotent_consumer::ClientConfig;
use idempotent_consumer::testkit::EmbeddedBroker;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rdkafka::topic_partition_list::TopicPartitionListElem;
use rdkafka::{Offset, TopicPartitionList};

/// What the producers sent: five orders, some of them again after a time-out that was a success.
const SENT: [&str; 9] = [
    "order-1", "order-2", "order-2", "order-3", "order-1", "order-4", "order-5", "order-5",
    "order-3",
];
const GROUP: &str = "ship-svc";
/// A broker that is there answers well within it.
const FIRST_ANSWER: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(60);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

pub(crate) fn tell(brokers: Option<String>) -> Result<()> {
    let embedded = if brokers.is_none() {
        Some(EmbeddedBroker::start()?)
    } else {
        None
    };
    let brokers = brokers
        .or_else(|| {
            embedded
                .as_ref()
                .map(|broker| broker.bootstrap_servers().to_owned())
        })
        .unwrap_or_default();
    let topic = format!(
        "shipments-{}",
        SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis()
    );
    match &embedded {
        Some(broker) => broker.create_topic(&topic, 1)?,
        None => create_topic(&brokers, &topic)?,
    }
    println!("broker {brokers}, topic {topic}, sent: {}", SENT.join(" "));
    produce(&brokers, &topic, &SENT)?;

    let dir = tempfile::tempdir()?;
    let group = format!("{GROUP}-{topic}");
    // How long a dead member keeps its partitions. A real broker allows no less than 6 s.
    let session_ms = if embedded.is_some() { "1500" } else { "6000" };
    let service = |crash_at| {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([
            "consume",
            "--brokers",
            &brokers,
            "--topic",
            &topic,
            "--group",
            &group,
        ]);
        command.args(["--session-ms", session_ms]);
        start(command, dir.path(), crash_at)
    };
    let mut table = vec![];

    let died = service(Some(3))?.wait_keeping_input()?;
    let shipped = fs::read_to_string(dir.path().join("shipped"))?
        .lines()
        .count();
    table.push(("first run", format!("shipped {shipped}, then died: {died}")));

    table.push(("restart", finish(service(None)?, &brokers, &topic, &group)?));

    rewind(&brokers, &topic, &group, session_ms)?;
    table.push((
        "after a rewind",
        finish(service(None)?, &brokers, &topic, &group)?,
    ));

    println!("\n{:<16}decided", "run");
    for (run, what) in &table {
        println!("{run:<16}{what}");
    }
    println!("\n{:<16}shipped", "order");
    let mut times = BTreeMap::new();
    for line in fs::read_to_string(dir.path().join("shipped"))?.lines() {
        *times
            .entry(line.split(' ').nth(1).unwrap_or_default().to_owned())
            .or_insert(0) += 1;
    }
    for (order, times) in &times {
        println!("{order:<16}{times}");
    }
    if times.len() != 5 || times.values().any(|times| *times != 1) {
        return Err("an order was not shipped exactly once".into());
    }
    println!("\n{} records sent, 5 orders shipped, each once", SENT.len());
    Ok(())
}

/// Asked first, since what comes later waits a minute before it says that nobody is there.
fn find_broker(brokers: &str) -> Result<()> {
    let client = client(brokers, GROUP, "6000")?;
    match client.fetch_metadata(None, FIRST_ANSWER) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!(
            "no broker answers at {brokers} ({error}); start one (scripts/kafka up) or leave \
             --brokers out"
        )
        .into()),
    }
}

trait WaitKeepingInput {
    /// Waits for the end without closing the child's input, which would tell it to stop.
    fn wait_keeping_input(self) -> std::io::Result<ExitStatus>;
}

impl WaitKeepingInput for Child {
    fn wait_keeping_input(mut self) -> std::io::Result<ExitStatus> {
        let _input = self.stdin.take();
        self.wait()
    }
}

/// Starts the service as a process of its own.
fn start(mut command: Command, dir: &Path, crash_at: Option<usize>) -> Result<Child> {
    command
        .arg("--store")
        .arg(dir.join("seen"))
        .arg("--shipped")
        .arg(dir.join("shipped"));
    if let Some(orders) = crash_at {
        command.args(["--crash-at", &orders.to_string()]);
    }
    Ok(command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?)
}

/// Lets the service come to the end of the topic, stops it, and gives its last word.
fn finish(mut service: Child, brokers: &str, topic: &str, group: &str) -> Result<String> {
    let watcher = client(brokers, group, "6000")?;
    let end = Instant::now() + PATIENCE;
    let (_, high) = watcher.fetch_watermarks(topic, 0, PATIENCE)?;
    loop {
        let mut asked = TopicPartitionList::new();
        asked.add_partition(topic, 0);
        let committed = watcher.committed_offsets(asked, PATIENCE)?;
        let reached = committed
            .elements()
            .first()
            .map(TopicPartitionListElem::offset);
        if reached == Some(Offset::Offset(high)) {
            break;
        }
        if let Some(status) = service.try_wait()? {
            return Err(format!("the service ended early: {status}").into());
        }
        if Instant::now() > end {
            service.kill()?;
            return Err(format!("the group stands at {reached:?}, not at {high}").into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    // The end of its input tells it to stop.
    drop(service.stdin.take());
    let output = service.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("the service ended with {}", output.status).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What an operator does with `kafka-consumer-groups.sh --reset-offsets --to-earliest`: here as a
/// member for a moment, since the embedded broker takes offsets from members alone.
fn rewind(brokers: &str, topic: &str, group: &str, session_ms: &str) -> Result<()> {
    let operator = client(brokers, group, session_ms)?;
    operator.subscribe(&[topic])?;
    let end = Instant::now() + PATIENCE;
    while operator.assignment()?.count() == 0 {
        if Instant::now() > end {
            return Err("the group did not let the operator in".into());
        }
        operator.poll(Duration::from_millis(50)).transpose()?;
    }
    let mut earliest = TopicPartitionList::new();
    earliest.add_partition_offset(topic, 0, Offset::Offset(0))?;
    Ok(operator.commit(&earliest, CommitMode::Sync)?)
}

fn client(brokers: &str, group: &str, session_ms: &str) -> Result<BaseConsumer> {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", brokers)
        .set("group.id", group);
    config
        .set("session.timeout.ms", session_ms)
        .set("heartbeat.interval.ms", "300");
    Ok(config.set("enable.auto.commit", "false").create()?)
}

fn produce(brokers: &str, topic: &str, orders: &[&str]) -> Result<()> {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("acks", "all")
        .create()?;
    for order in orders {
        let record = BaseRecord::<str, str>::to(topic)
            .partition(0)
            .payload(order);
        producer.send(record).map_err(|(error, _)| error)?;
    }
    Ok(producer.flush(PATIENCE)?)
}

#[tokio::main(flavor = "current_thread")]
async fn create_topic(brokers: &str, topic: &str) -> Result<()> {
    find_broker(brokers)?;
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .create()?;
    let topic = NewTopic::new(topic, 1, TopicReplication::Fixed(1));
    for created in admin.create_topics([&topic], &AdminOptions::new()).await? {
        created.map_err(|(topic, code)| format!("creating {topic}: {code}"))?;
    }
    Ok(())
}
