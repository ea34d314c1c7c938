//! Transactions in each other's way, and records that fail beside others that do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use idempotent_consumer::store::SqlEffects;
use idempotent_consumer::{DeadLetter, Delivery, HandlerError};
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

use crate::database::{Database, wait_for};
use crate::member::{
    GROUP, Member, a_partition_for_each, broker, builder, builder_with, key_of, note, numbered,
    produce,
};
use crate::shared;

/// Two orders that handlers change.
const TWO_ORDERS: &str = "INSERT INTO orders VALUES ('left', 'new', 0), ('right', 'new', 0)";
const CHANGES: &str = "SELECT changes FROM orders ORDER BY id";

/// The first two calls meet here; what is tried again does not wait for anybody.
#[derive(Clone)]
struct Meeting(Arc<(Barrier, AtomicUsize)>);

impl Meeting {
    fn of_two() -> Self {
        Self(Arc::new((Barrier::new(2), AtomicUsize::new(0))))
    }

    async fn meet(&self) {
        if self.0.1.fetch_add(1, Ordering::SeqCst) < 2 {
            self.0.0.wait().await;
        }
    }
}

#[test]
fn of_two_handlers_in_a_deadlock_each_takes_effect_once() {
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(2));
    database.run(TWO_ORDERS);
    produce(&broker, 0, &["left"]);
    produce(&broker, 1, &["right"]);
    let meeting = Meeting::of_two();
    let handler = async move |record: &Delivery<'_>, sql: &mut SqlEffects| {
        note(record, sql).await?;
        let change = "UPDATE orders SET changes = changes + 1 WHERE id = $1";
        let first = key_of(record);
        let second = if first == "left" { "right" } else { "left" };
        sql.execute(change, &[&first]).await?;
        meeting.meet().await;
        sql.execute(change, &[&second]).await?;
        Ok(())
    };
    let member = Member::running(
        builder(broker.bootstrap_servers()),
        &database.config,
        handler,
    );
    member.wait_for("both effects", || database.effects() >= 2);
    let report = member.stop();
    // Nothing was wrong with the record whose statement failed.
    assert_eq!(report.counts.retried, 0);
    assert!(server.log().contains("deadlock detected"));
    assert_eq!(database.ask::<i32>(CHANGES), [2, 2]);
    database.assert_each_once(&["left", "right"], &[], true);
}

/// A constraint that is looked at when the transaction commits, and then fails as `condition` says.
fn failing_commits(database: &Database, code: &str, condition: &str) {
    database.run(&format!(
        "CREATE SEQUENCE commits;
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF {condition} THEN RAISE EXCEPTION 'refused' USING ERRCODE = '{code}'; END IF;
             RETURN NULL;
         END $$;
         CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON effects
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()"
    ));
}

#[test]
fn a_commit_that_cannot_be_serialized_is_done_again() {
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(1));
    // A sequence counts on when its transaction does not.
    failing_commits(&database, "40001", "nextval('commits') <= 3");
    let keys = numbered(0..20);
    produce(&broker, 0, &keys);
    let member = Member::start(builder(broker.bootstrap_servers()), &database.config);
    member.wait_for("all effects", || database.effects() >= keys.len());
    let report = member.stop();
    // Nothing was wrong with the records.
    assert_eq!(report.counts.retried, 0);
    assert!(database.ask_one::<i64>("SELECT last_value FROM commits") > 3);
    database.assert_each_once(&keys, &[], true);
}

#[test]
fn a_constraint_that_is_checked_late_fails_its_own_record_and_no_other() {
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(1));
    broker.create_topic("letters", 1).unwrap();
    failing_commits(&database, "23514", "NEW.key = 'order-7'");
    let keys = numbered(0..20);
    produce(&broker, 0, &keys);
    let lettered = builder(broker.bootstrap_servers()).dead_letter(DeadLetter::to_topic("letters"));
    let member = Member::start(lettered, &database.config);
    member.wait_for("the others", || database.effects() >= keys.len() - 1);
    let report = member.stop();
    assert_eq!((report.counts.dead_lettered, report.counts.new), (1, 19));
    let done: Vec<_> = keys.into_iter().filter(|key| key != "order-7").collect();
    database.assert_each_once(&done, &[], true);
}

#[test]
fn a_failing_record_undoes_its_own_writes_and_nobody_elses() {
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(1));
    let keys = numbered(0..50);
    produce(&broker, 0, &keys);
    let failures = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&failures);
    let handler = async move |record: &Delivery<'_>, sql: &mut SqlEffects| {
        note(record, sql).await?;
        if record.offset() % 10 == 5 && record.attempt() < 3 {
            counted.fetch_add(1, Ordering::SeqCst);
            // Half of them by an error of the server's, which no statement may follow.
            if record.attempt() == 1 {
                sql.execute("SELECT 1 / 0", &[]).await?;
            }
            return Err("the other side is busy".into());
        }
        Ok(())
    };
    let member = Member::running(
        builder(broker.bootstrap_servers()),
        &database.config,
        handler,
    );
    member.wait_for("all effects", || database.effects() >= keys.len());
    let report = member.stop();
    assert_eq!(failures.load(Ordering::SeqCst), 10);
    assert_eq!(report.counts.retried, 10);
    database.assert_each_once(&keys, &[], true);
}

#[test]
fn a_record_that_goes_to_the_dead_letters_leaves_nothing_in_the_database() {
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(1));
    broker.create_topic("letters", 1).unwrap();
    let keys = numbered(0..20);
    produce(&broker, 0, &keys);
    let handler = async |record: &Delivery<'_>, sql: &mut SqlEffects| {
        note(record, sql).await?;
        if key_of(record) == "order-7" {
            return Err(HandlerError::reject("no such customer"));
        }
        Ok(())
    };
    let lettered = builder(broker.bootstrap_servers()).dead_letter(DeadLetter::to_topic("letters"));
    let member = Member::running(lettered, &database.config, handler);
    member.wait_for("the others", || database.effects() >= keys.len() - 1);
    let report = member.stop();
    assert_eq!((report.counts.dead_lettered, report.counts.new), (1, 19));
    let done: Vec<_> = keys.into_iter().filter(|key| key != "order-7").collect();
    database.assert_each_once(&done, &[], true);
}

/// Whether a session of this database waits for another's.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// One key in two partitions, at work in both at the same time; gives how often it was handled.
fn at_work_twice(first_fails: bool) -> usize {
    let Some(server) = shared::server() else {
        return if first_fails { 2 } else { 1 };
    };
    let (database, broker) = (Database::new(&server), broker(2));
    let calls = Arc::new(AtomicUsize::new(0));
    let greeted = [0, 1].map(|_| Arc::new(AtomicUsize::new(0)));
    let go = CancellationToken::new();
    let members = greeted.each_ref().map(|greeted| {
        let (greeted, counted) = (Arc::clone(greeted), Arc::clone(&calls));
        let wait = go.clone();
        let handler = async move |record: &Delivery<'_>, sql: &mut SqlEffects| {
            note(record, sql).await?;
            if key_of(record) != "same" {
                greeted.fetch_add(1, Ordering::SeqCst);
            } else if counted.fetch_add(1, Ordering::SeqCst) == 0 {
                wait.cancelled().await;
                if first_fails {
                    return Err("the first to come failed".into());
                }
            }
            Ok(())
        };
        // A session that a busy machine does not miss: a member that loses its partition in the
        // middle is a case of its own.
        let settings = builder_with(broker.bootstrap_servers(), "6000");
        Member::running(settings, &database.config, handler)
    });
    let mut keys = a_partition_for_each(&database, &broker, 2, &greeted);
    produce(&broker, 0, &["same"]);
    produce(&broker, 1, &["same"]);
    // Keys are claimed before the handler runs: the second may wait for a first that is not in its
    // handler yet.
    wait_for("the second to wait for the first, at work", || {
        calls.load(Ordering::SeqCst) > 0 && database.ask_one::<i64>(WAITING) > 0
    });
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    go.cancel();
    keys.push("same".to_owned());
    database.wait_for_effects(keys.len());
    for member in members {
        member.stop();
    }
    database.assert_each_once(&keys, &[], true);
    calls.load(Ordering::SeqCst)
}

#[test]
fn two_owners_of_one_key_wait_for_each_other_and_the_second_sees_what_the_first_did() {
    assert_eq!(at_work_twice(false), 1, "group {GROUP}");
}

#[test]
fn where_the_first_owner_of_a_key_fails_the_second_does_it() {
    assert_eq!(at_work_twice(true), 2);
}
