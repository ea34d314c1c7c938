//! The server dies, or cuts the line, at the moments that count.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idempotent_consumer::store::SqlEffects;
use idempotent_consumer::testkit::EmbeddedBroker;
use idempotent_consumer::{Builder, Delivery, RetryPolicy};
use tokio_util::sync::CancellationToken;

use crate::chance::Chance;
use crate::database::{Database, wait_for};
use crate::member::{Member, broker, builder, key_of, note, numbered, produce};
use crate::postgres::Postgres;
use crate::shared;
use crate::wire::{Cut, Wire};

const KEYS: usize = 200;
/// All sessions of this database but the one that asks.
const TERMINATE: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
    WHERE datname = current_database() AND pid <> pg_backend_pid()";

/// Goes on through an outage of half a minute.
fn patient(broker: &EmbeddedBroker) -> Builder {
    let longer =
        RetryPolicy::exponential(200, Duration::from_millis(5), Duration::from_millis(200));
    builder(broker.bootstrap_servers()).retry(longer)
}

/// A member that waits in the middle of its work, before the key `order-100` and behind what that
/// handler writes, until it is let go.
struct Held {
    member: Member,
    reached: CancellationToken,
    go: CancellationToken,
}

impl Held {
    fn start(builder: Builder, database: &Database) -> Self {
        let (reached, go) = (CancellationToken::new(), CancellationToken::new());
        let (tell, wait) = (reached.clone(), go.clone());
        let handler = async move |record: &Delivery<'_>, sql: &mut SqlEffects| {
            note(record, sql).await?;
            if key_of(record) == "order-100" {
                tell.cancel();
                wait.cancelled().await;
            }
            Ok(())
        };
        let member = Member::running(builder, &database.config, handler);
        Self {
            member,
            reached,
            go,
        }
    }

    fn wait_until_held(&self) {
        self.member
            .wait_for("the key that it waits at", || self.reached.is_cancelled());
    }
}

/// All keys took effect once, and the member can be stopped in order.
fn assert_done(database: &Database, member: Member, keys: &[String]) {
    member.wait_for("all effects", || database.effects() >= keys.len());
    member.stop();
    database.assert_each_once(keys, &[], true);
}

#[test]
fn a_server_killed_in_the_middle_of_a_batch_has_none_of_it_and_then_all_of_it_once() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let (mut database, broker) = (Database::new(&server), broker(1));
    let keys = numbered(0..KEYS);
    produce(&broker, 0, &keys);
    let held = Held::start(patient(&broker), &database);
    held.wait_until_held();
    server.kill();
    held.go.cancel();
    server.resume();
    database.reconnect();
    assert_done(&database, held.member, &keys);
}

#[test]
fn a_session_ended_in_the_middle_of_a_batch_has_none_of_it_and_then_all_of_it_once() {
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(1));
    let keys = numbered(0..KEYS);
    produce(&broker, 0, &keys);
    let held = Held::start(patient(&broker), &database);
    held.wait_until_held();
    assert!(!database.ask::<bool>(TERMINATE).is_empty());
    held.go.cancel();
    assert_done(&database, held.member, &keys);
}

/// A commit waits for a standby that never comes, where all but the answer has been done: ended
/// there, the client cannot know. What it then finds must be what counts.
#[test]
fn a_session_ended_in_the_middle_of_a_commit_is_asked_about_and_nothing_is_done_again() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(1));
    let member = Member::start(patient(&broker), &database.config);
    let first = numbered(0..1);
    produce(&broker, 0, &first);
    database.wait_for_effects(1);
    database.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    database.run("SELECT pg_reload_conf()");
    let keys = numbered(0..KEYS);
    produce(&broker, 0, &keys[1..]);
    let waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    member.wait_for("a commit that waits", || {
        !database.ask::<i32>(waiting).is_empty()
    });
    database.run("ALTER SYSTEM RESET synchronous_standby_names");
    // Before the new setting is read, which would let the commit go on.
    let end = format!("SELECT pg_terminate_backend(pid) FROM ({waiting}) AS waiting");
    assert_eq!(database.ask::<bool>(&end), [true]);
    database.run("SELECT pg_reload_conf()");
    assert_done(&database, member, &keys);
    assert!(
        server
            .log()
            .contains("terminating connection due to administrator command")
    );
}

fn cut_at_commit(cut: Cut) {
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(1));
    let wire = Wire::before(&database.config);
    let member = Member::start(patient(&broker), &wire.config(&database.config));
    let keys = numbered(0..KEYS);
    // Again and again: a commit of the first records, of later ones, and of the last.
    for (count, part) in keys.chunks(KEYS / 4).enumerate() {
        wire.cut_at("COMMIT", cut);
        produce(&broker, 0, part);
        let done = (count + 1) * part.len();
        member.wait_for("a part of the effects", || database.effects() >= done);
        wait_for("the cut", || wire.cuts() > count as u64);
    }
    assert_done(&database, member, &keys);
}

#[test]
fn a_commit_that_never_arrived_is_done_again() {
    cut_at_commit(Cut::Request);
}

#[test]
fn a_commit_whose_answer_never_arrived_is_not_done_again() {
    cut_at_commit(Cut::Answer);
}

#[test]
fn kills_and_ended_sessions_at_random_lose_and_repeat_nothing() {
    const FAULTS: usize = 12;
    let Some(server) = Postgres::start() else {
        return;
    };
    let mut chance = Chance::told("kills and ended sessions");
    let (mut database, broker) = (Database::new(&server), broker(2));
    let slow = async |record: &Delivery<'_>, sql: &mut SqlEffects| {
        note(record, sql).await?;
        tokio::time::sleep(Duration::from_micros(500)).await;
        Ok(())
    };
    let members = [0, 1].map(|_| Member::running(patient(&broker), &database.config, slow));
    let faults = Arc::new(AtomicUsize::new(0));
    let mut keys = Vec::new();
    while faults.fetch_add(1, Ordering::SeqCst) < FAULTS {
        let new = numbered(keys.len()..keys.len() + 100);
        for partition in [0, 1] {
            // Each in both.
            produce(&broker, partition, &new);
        }
        let before = database.effects();
        database.wait_for_effects(before + 1);
        // The moment of the fault; nothing is waited for.
        std::thread::sleep(chance.time_below(Duration::from_millis(60)));
        if chance.one_in(4) {
            server.kill();
            server.resume();
            database.reconnect();
        } else {
            database.ask::<bool>(TERMINATE);
        }
        keys.extend(new);
    }
    database.wait_for_effects(keys.len());
    for member in members {
        member.stop();
    }
    database.assert_each_once(&keys, &[], true);
}
