//! How long after its handler a record's mark is durable, at 10,000 records a second.

use std::fs::File;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use idempotent_consumer::store::{SledStore, Store as _};
use idempotent_consumer::{Delivery, Effects, IdempotentConsumer, key};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use tokio_util::sync::CancellationToken;

use crate::support::{self, Outcome, Spread};
use crate::topic::Topic;
use crate::{Bench, RUN_LIMIT, numbers};

/// Produced at once, every millisecond.
const BURST: usize = 10;
const PERIOD: Duration = Duration::from_millis(1);
const RECORDS: usize = 100_000;
/// While the group is joined and the caches are cold.
const WARM_UP: usize = 20_000;
const LOOK_EVERY: Duration = Duration::from_micros(200);

const CONTENDERS: [&str; 2] = [
    "a file alone: 1 kB appended and synced, again and again",
    "from the handler to the durable mark",
];

/// By partition and offset.
type Times = Vec<Vec<Option<Instant>>>;

pub(crate) fn run(bench: &Bench) -> Outcome<()> {
    let rounds = bench.rounds;
    println!("### Latency: {RECORDS} records, 10000 a second, `Durability::Power`\n");
    println!(
        "| partitions | ms, {rounds} round(s) | median | 99 %, middle round | 99 %, worst round | \
         longest |"
    );
    println!("| ---: | --- | ---: | ---: | ---: | ---: |");
    for partitions in numbers("BENCH_PARTITIONS", &[1, 4, 16])? {
        let mut rows = [const { Vec::new() }; CONTENDERS.len()];
        for _ in 0..rounds {
            for (contender, row) in rows.iter_mut().enumerate() {
                row.push(round(bench, partitions, contender)?);
            }
        }
        for (what, row) in CONTENDERS.iter().zip(rows) {
            print_row(partitions, what, &row);
        }
    }
    println!();
    Ok(())
}

/// Half, 99 % and all of a round's records had waited for so long at most, in milliseconds.
type Waited = [f64; 3];

fn round(bench: &Bench, partitions: usize, contender: usize) -> Outcome<Waited> {
    let topic = Topic::empty(&bench.bootstrap, partitions);
    let mut topic = bench.runtime.block_on(topic)?;
    topic.records = RECORDS;
    let waits = match contender {
        0 => device(&topic),
        _ => bench.runtime.block_on(measure(&topic)),
    };
    bench.runtime.block_on(topic.delete())?;
    let mut waits = waits?;
    waits.sort();
    Ok([50, 99, 100].map(|hundredths| {
        let index = (waits.len() * hundredths / 100).min(waits.len().saturating_sub(1));
        waits
            .get(index)
            .map_or(f64::NAN, |wait| wait.as_secs_f64() * 1e3)
    }))
}

fn print_row(partitions: usize, what: &str, rounds: &[Waited]) {
    let [half, most, all] =
        [0, 1, 2].map(|column| Spread::of(rounds.iter().map(|waited| waited[column]).collect()));
    println!(
        "| {partitions} | {what} | {:.1} | {:.1} | {:.1} | {:.1} |",
        half.median, most.median, most.highest, all.highest
    );
}

/// What the device does under the same records and the same broker, with nothing of ours: no mark
/// can be durable sooner than that.
fn device(topic: &Topic) -> Outcome<Vec<Duration>> {
    let directory = support::on_disk()?;
    let mut file = File::create(directory.path().join("file"))?;
    std::thread::scope(|scope| {
        let (config, name, partitions) = (topic.client(), &topic.name, topic.partitions);
        let producing = scope
            .spawn(move || produce(&config, name, partitions).map_err(|error| error.to_string()));
        let mut waits = Vec::new();
        while !producing.is_finished() {
            let begun = Instant::now();
            file.write_all(&[0; 1_000])?;
            file.sync_data()?;
            waits.push(begun.elapsed());
        }
        producing.join().map_err(|_| "the producer panicked")??;
        Ok(waits)
    })
}

async fn measure(topic: &Topic) -> Outcome<Vec<Duration>> {
    let directory = support::on_disk()?;
    let store = Arc::new(SledStore::open(directory.path().join("store"))?);
    let consumer = IdempotentConsumer::builder(topic.fresh_group())
        .topics([topic.name.as_str()])
        .key(key::record_key())
        .build(Arc::clone(&store))?;
    let times = Arc::new(Mutex::new(empty(topic)));
    let seen = Arc::clone(&times);
    let handler = async move |delivery: &Delivery<'_>, _: &mut Effects| {
        let (record, now) = (delivery.record(), Instant::now());
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        note(&mut seen, record.partition(), record.offset(), now);
        Ok(())
    };
    let shutdown = CancellationToken::new();
    let consuming = tokio::spawn(consumer.run(handler, shutdown.clone()));
    let producing = tokio::task::spawn_blocking({
        let (config, name) = (topic.client(), topic.name.clone());
        let partitions = topic.partitions;
        move || produce(&config, &name, partitions).map_err(|error| error.to_string())
    });
    let (mut durable, mut reached) = (empty(topic), vec![0_i64; topic.partitions]);
    let limit = Instant::now() + RUN_LIMIT;
    while reached.iter().sum::<i64>() < i64::try_from(RECORDS)? && Instant::now() < limit {
        let heads = store.heads();
        let now = Instant::now();
        for (partition, head) in heads {
            let Some(head) = head else { continue };
            let number = partition.partition();
            let reached = &mut reached[usize::try_from(number)?];
            for offset in *reached..head.next.get() {
                note(&mut durable, number, offset, now);
            }
            *reached = head.next.get();
        }
        std::thread::sleep(LOOK_EVERY);
    }
    shutdown.cancel();
    consuming.await??;
    producing.await??;
    let times = times.lock().unwrap_or_else(PoisonError::into_inner);
    let cold = WARM_UP / topic.partitions;
    let both = times.iter().flat_map(|one| one.iter().skip(cold));
    let both = both.zip(durable.iter().flat_map(|one| one.iter().skip(cold)));
    let waits = both.map(|(handled, durable)| Some((*durable)? - (*handled)?));
    waits
        .collect::<Option<_>>()
        .ok_or_else(|| "not all records became durable".into())
}

fn empty(topic: &Topic) -> Times {
    vec![vec![None; RECORDS / topic.partitions]; topic.partitions]
}

fn note(times: &mut Times, partition: i32, offset: i64, now: Instant) {
    let of = usize::try_from(partition)
        .ok()
        .and_then(|partition| times.get_mut(partition));
    let place = usize::try_from(offset)
        .ok()
        .and_then(|offset| of?.get_mut(offset));
    if let Some(place) = place {
        place.get_or_insert(now);
    }
}

fn produce(config: &rdkafka::ClientConfig, name: &str, partitions: usize) -> Outcome<()> {
    let mut config = config.clone();
    config.set("linger.ms", "0");
    let producer: BaseProducer = config.create()?;
    let mut next = Instant::now();
    for number in 0..RECORDS {
        if number % BURST == 0 {
            next += PERIOD;
            producer.poll(Duration::ZERO);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        let key = format!("order-{number:012}");
        let record = BaseRecord::to(name)
            .partition(i32::try_from(number % partitions)?)
            .key(&key)
            .payload(&[b'v'; 100][..]);
        producer.send(record).map_err(|(error, _)| error)?;
    }
    Ok(producer.flush(Duration::from_secs(30))?)
}
