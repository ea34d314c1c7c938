//! The batches against a database made of lists, on the embedded broker.

mod bank;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use self::bank::{Bank, Fault, Rows};
use super::Together;
use crate::engine::Engine;
use crate::error::Error;
use crate::handler::{Delivery, HandlerError, HandlerFn, HandlerResult};
use crate::key::{self, MissingKey, Scope};
use crate::pipeline::{Mismatch, Ordering, Report, Restore, Session, Settings, drive};
use crate::record::{NextOffset, TopicPartition};
use crate::retention::Retention;
use crate::retry::RetryPolicy;
use crate::source::ClientConfig;
use crate::source::kafka::KafkaSource;
use crate::store::{Owner, Store};
use crate::testkit::{EmbeddedBroker, Produced};

const DEADLINE: Duration = Duration::from_secs(60);

struct Shop {
    broker: EmbeddedBroker,
    topic: &'static str,
    group: &'static str,
    bank: Arc<Bank>,
}

fn settings() -> Settings {
    let pause = Duration::from_millis(1);
    Settings {
        recipe: key::record_key(),
        missing_key: MissingKey::default(),
        mismatch: Mismatch::default(),
        restore: Restore::default(),
        ordering: Ordering::default(),
        concurrency_max: None,
        retry: RetryPolicy::exponential(3, pause, pause),
        letterbox: None,
        replay_from: Arc::new([]),
        retention: Retention::unbounded(),
        on_duplicate: None,
        on_restore: None,
        on_assignment: None,
        uncommitted_records_max: 1_000,
        unsynced_records_max: 1_000,
        commit_linger: Duration::from_secs(60),
        offset_interval: Duration::from_millis(10),
        offsets_sent: false,
        transacts: true,
        drain_limit: Duration::from_secs(20),
    }
}

impl Shop {
    fn with(topic: &'static str, orders: &[&str]) -> Self {
        let broker = EmbeddedBroker::start().unwrap();
        broker.create_topic(topic, 1).unwrap();
        let shop = Self {
            broker,
            topic,
            group: "shop",
            bank: Arc::default(),
        };
        shop.orders(orders);
        shop
    }

    fn orders(&self, orders: &[&str]) {
        let records: Vec<_> = orders
            .iter()
            .map(|order| Produced {
                key: Some(order.as_bytes()),
                value: Some(b"paid"),
                ..Produced::default()
            })
            .collect();
        self.broker.produce(self.topic, &records).unwrap();
    }

    fn engine(&self) -> Engine {
        let owner = Owner {
            group: "shop".to_owned(),
            recipe: "record key".to_owned(),
            scope: "topic".to_owned(),
        };
        let store: Arc<dyn Store> = Arc::clone(&self.bank.store) as _;
        Engine::new(store, &owner, Scope::Topic).unwrap()
    }

    /// Runs until so many rows are there, or until it fails.
    fn until<F>(&self, rows: usize, handler: F) -> Result<Report, Error>
    where
        F: AsyncFn(&Delivery<'_>, &mut Rows) -> HandlerResult + Send + Sync + 'static,
    {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let together = Together {
            handler: HandlerFn(handler),
            transactions: Arc::clone(&self.bank) as _,
            shows_copies: false,
            runtime: runtime.handle().clone(),
        };
        let session = Session::new(self.engine(), settings(), Arc::new(together))?;
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", self.broker.bootstrap_servers())
            .set("group.id", self.group)
            // The embedded group rests for as long after a member has left.
            .set("session.timeout.ms", "6000")
            .set("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false");
        let source = KafkaSource::new(&config, vec![self.topic.to_owned()])?;
        let (stop, over) = (CancellationToken::new(), CancellationToken::new());
        let watching = {
            let (bank, stop, over) = (Arc::clone(&self.bank), stop.clone(), over.clone());
            std::thread::spawn(move || {
                let end = Instant::now() + DEADLINE;
                while bank.rows().len() < rows && !over.is_cancelled() {
                    assert!(Instant::now() < end, "only {:?} by now", bank.rows());
                    std::thread::sleep(Duration::from_millis(2));
                }
                stop.cancel();
            })
        };
        let report = drive(source, &Arc::new(session), &stop);
        over.cancel();
        watching.join().unwrap();
        report
    }
}

async fn ship(delivery: &Delivery<'_>, rows: &mut Rows) -> HandlerResult {
    rows.insert(String::from_utf8_lossy(delivery.key().unwrap_or(b"?")).into_owned());
    Ok(())
}

/// Says whether the step was there to fail.
fn with_a_step_that_fails(before: usize) -> bool {
    let shop = Shop::with("orders", &["a", "b", "a", "c", "b", "d"]);
    shop.bank.fail(Fault::Aborted, before);
    let report = shop.until(4, ship).unwrap();
    assert_eq!(shop.bank.rows(), ["a", "b", "c", "d"], "step {before}");
    assert_eq!(report.counts.new, 4, "step {before}");
    shop.bank.has_failed()
}

#[test]
fn whichever_step_of_a_transaction_fails_each_key_has_one_row_in_order() {
    // At the same time: joining the group is what takes long.
    let mut steps = 0;
    loop {
        let runs: Vec<_> = (steps..steps + 8)
            .map(|before| std::thread::spawn(move || with_a_step_that_fails(before)))
            .collect();
        let failed: Vec<_> = runs.into_iter().map(|run| run.join().unwrap()).collect();
        steps += failed.iter().filter(|failed| **failed).count();
        if failed.contains(&false) {
            break;
        }
    }
    assert!(steps > 10, "only {steps} steps were there to fail");
}

#[test]
fn what_was_handled_in_one_transaction_is_committed_once() {
    let shop = Shop::with("orders", &["a", "b", "c", "d"]);
    shop.until(4, ship).unwrap();
    // One look may come before all have been fetched.
    assert!(shop.bank.commits() <= 2, "{}", shop.bank.commits());
}

#[test]
fn a_failing_record_keeps_its_failure_to_itself_and_its_place_in_the_order() {
    let shop = Shop::with("orders", &["a", "b", "c"]);
    let report = shop.until(3, async |delivery: &Delivery<'_>, rows: &mut Rows| {
        ship(delivery, rows).await?;
        if delivery.key() == Some(b"b") && delivery.attempt() < 3 {
            return Err("not yet".into());
        }
        Ok(())
    });
    assert_eq!(shop.bank.rows(), ["a", "b", "c"]);
    assert_eq!(report.unwrap().counts.new, 3);
}

#[test]
fn a_panic_leaves_no_row_and_is_tried_again() {
    let shop = Shop::with("orders", &["a", "b"]);
    let report = shop.until(2, async |delivery: &Delivery<'_>, rows: &mut Rows| {
        ship(delivery, rows).await?;
        assert!(delivery.key() != Some(b"b") || delivery.attempt() > 1);
        Ok(())
    });
    assert_eq!(shop.bank.rows(), ["a", "b"]);
    assert!(report.is_ok());
}

#[test]
fn a_rejected_record_stops_behind_what_is_done_and_nothing_behind_it_is() {
    let shop = Shop::with("orders", &["a", "b", "c"]);
    let ended = shop.until(3, async |delivery: &Delivery<'_>, rows: &mut Rows| {
        ship(delivery, rows).await?;
        if delivery.key() == Some(b"b") {
            return Err(HandlerError::reject("no such article"));
        }
        Ok(())
    });
    let error = ended.unwrap_err();
    assert!(matches!(error, Error::Handler { .. }), "{error}");
    assert_eq!(shop.bank.rows(), ["a"]);
    assert_eq!(shop.until(3, ship).unwrap().counts.new, 2);
    assert_eq!(shop.bank.rows(), ["a", "b", "c"]);
}

#[test]
fn a_key_that_another_owner_has_done_meanwhile_is_a_copy() {
    let shop = Shop::with("orders", &["a", "b", "c"]);
    // Its mark comes between the look-up and the claim of all three.
    shop.bank.second_is_done_elsewhere();
    let report = shop.until(2, ship).unwrap();
    assert_eq!(shop.bank.rows(), ["a", "c"]);
    assert_eq!((report.counts.new, report.counts.duplicate), (2, 1));
}

#[test]
fn a_copy_that_waits_behind_one_that_was_done_elsewhere_keeps_its_place() {
    let shop = Shop::with("orders", &["a", "b", "b", "c", "b"]);
    shop.bank.second_is_done_elsewhere();
    let report = shop.until(2, ship).unwrap();
    assert_eq!(shop.bank.rows(), ["a", "c"]);
    assert_eq!(report.counts.new, 2);
    assert!(report.counts.duplicate >= 2, "{report:?}");
}

#[test]
fn a_commit_of_which_nothing_can_be_said_but_failure_ends_the_run_without_a_row() {
    let shop = Shop::with("orders", &["a", "b"]);
    shop.bank.fail(Fault::Failed, 0);
    let ended = shop.until(2, ship);
    assert!(matches!(ended, Err(Error::Store(_))), "{ended:?}");
    assert_eq!(shop.bank.rows(), <[&str; 0]>::default());
    assert_eq!(shop.until(2, ship).unwrap().counts.new, 2);
}

#[test]
fn where_the_group_is_ahead_of_the_store_what_lies_between_is_handled() {
    let mut shop = Shop::with("orders", &["a"]);
    shop.group = "another";
    shop.until(1, ship).unwrap();
    let older = Arc::clone(&shop.bank);
    shop.orders(&["b", "c"]);
    (shop.group, shop.bank) = ("shop", Arc::default());
    shop.until(3, ship).unwrap();
    // The database is put back from an older copy.
    shop.bank = older;
    shop.until(3, ship).unwrap();
    assert_eq!(shop.bank.rows(), ["a", "b", "c"]);
}

#[test]
fn copies_alone_move_the_position_too() {
    let shop = Shop::with("orders", &["a"]);
    shop.until(1, ship).unwrap();
    shop.orders(&["a", "a", "b"]);
    shop.until(2, ship).unwrap();
    let heads = shop.bank.store.heads();
    let next = heads[0].1.map(|head| head.next);
    assert_eq!(heads[0].0, TopicPartition::new("orders", 0));
    assert_eq!(next, NextOffset::new(4));
}
