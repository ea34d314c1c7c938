//! Several members, one database.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idempotent_consumer::store::SqlEffects;
use idempotent_consumer::store::{Store as _, StoreError};
use idempotent_consumer::{Delivery, NextOffset, TopicPartition};
use tokio_util::sync::CancellationToken;

use crate::database::{Database, wait_for};
use crate::member::{
    Member, TOPIC, a_partition_for_each, broker, builder, note, numbered, produce, store,
};
use crate::shared;

const PARTITIONS: i32 = 6;

#[test]
fn copies_in_other_partitions_of_other_members_are_recognised() {
    const KEYS: usize = 600;
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(PARTITIONS));
    let greeted = [0, 1, 2].map(|_| Arc::new(AtomicUsize::new(0)));
    let members = greeted.each_ref().map(|greeted| {
        let greeted = Arc::clone(greeted);
        let handler = async move |record: &Delivery<'_>, sql: &mut SqlEffects| {
            note(record, sql).await?;
            greeted.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        Member::running(
            builder(broker.bootstrap_servers()),
            &database.config,
            handler,
        )
    });
    let greetings = a_partition_for_each(&database, &broker, PARTITIONS, &greeted);
    let keys = numbered(0..KEYS);
    // Every key in three partitions that are next to each other, in bursts of all at once.
    for part in keys.chunks(KEYS / 6) {
        for partition in 0..PARTITIONS {
            let in_here = |number: &usize| {
                let first = i32::try_from(*number).unwrap() % PARTITIONS;
                (partition - first).rem_euclid(PARTITIONS) < 3
            };
            let here: Vec<_> = (0..part.len()).filter(in_here).map(|n| &part[n]).collect();
            produce(&broker, partition, &here);
        }
    }
    let keys = [greetings, keys].concat();
    database.wait_for_effects(keys.len());
    let reports = members.map(Member::stop);
    let copies: u64 = reports.iter().map(|report| report.counts.duplicate).sum();
    assert!(copies > 0, "{reports:?}");
    database.assert_each_once(&keys, &[], false);
}

#[test]
fn members_that_come_and_go_lose_and_repeat_nothing() {
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(4));
    let mut keys = Vec::new();
    let mut more = |count: usize| {
        let new = numbered(keys.len()..keys.len() + count);
        for partition in 0..4 {
            let here: Vec<_> = new.iter().skip(partition).step_by(4).collect();
            produce(&broker, i32::try_from(partition).unwrap(), &here);
        }
        keys.extend(new);
        keys.len()
    };
    let slow = async |record: &Delivery<'_>, sql: &mut SqlEffects| {
        note(record, sql).await?;
        tokio::time::sleep(Duration::from_micros(300)).await;
        Ok(())
    };
    let start = || Member::running(builder(broker.bootstrap_servers()), &database.config, slow);
    more(300);
    let first = start();
    database.wait_for_effects(50);
    // The rebalance takes partitions away from the first while it is at work.
    let second = start();
    more(300);
    database.wait_for_effects(400);
    first.stop();
    let third = start();
    let all = more(200);
    database.wait_for_effects(all);
    second.stop();
    third.stop();
    database.assert_each_once(&keys, &[], false);
}

#[test]
fn the_commit_of_an_owner_that_was_replaced_changes_nothing_and_is_refused() {
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(1));
    // A first life, so that the store is bound as a consumer binds it.
    let member = Member::start(builder(broker.bootstrap_servers()), &database.config);
    produce(&broker, 0, &["order-0"]);
    database.wait_for_effects(1);
    let (reached, go) = (CancellationToken::new(), CancellationToken::new());
    member.stop();
    let (tell, wait) = (reached.clone(), go.clone());
    let handler = async move |record: &Delivery<'_>, sql: &mut SqlEffects| {
        note(record, sql).await?;
        tell.cancel();
        wait.cancelled().await;
        Ok(())
    };
    let zombie = Member::running(
        builder(broker.bootstrap_servers()),
        &database.config,
        handler,
    );
    produce(&broker, 0, &["order-1"]);
    zombie.wait_for("its handler", || reached.is_cancelled());
    // Another process takes the partition while the first stands still in its handler.
    let other = store(&database.config);
    let lease = other.lease(&TopicPartition::new(TOPIC, 0)).unwrap();
    assert_eq!(lease.head.unwrap().next, NextOffset::new(1).unwrap());
    assert!(lease.in_doubt);
    go.cancel();
    let error = zombie.end().unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(
            error,
            idempotent_consumer::Error::Store(StoreError::Fenced { .. })
        ),
        "{text}"
    );
    assert!(text.contains(TOPIC), "{text}");
    // What its handler wrote went with the refused commit.
    database.assert_each_once(&["order-0"], &[], true);
    other.release(&lease).unwrap();
    let next = Member::start(builder(broker.bootstrap_servers()), &database.config);
    database.wait_for_effects(2);
    next.stop();
    database.assert_each_once(&["order-0", "order-1"], &[], true);
}

#[test]
fn a_member_that_outlives_its_revocation_is_fenced_and_the_new_owner_does_its_work() {
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(1));
    let (reached, go) = (CancellationToken::new(), CancellationToken::new());
    let settings = || builder(broker.bootstrap_servers()).drain_limit(Duration::from_millis(100));
    let handler = |name: &'static str| {
        let (tell, wait) = (reached.clone(), go.clone());
        async move |record: &Delivery<'_>, sql: &mut SqlEffects| {
            note(record, sql).await?;
            sql.execute("INSERT INTO messages VALUES ($1)", &[&name])
                .await?;
            if name == "slow" {
                tell.cancel();
                wait.cancelled().await;
            }
            Ok(())
        }
    };
    let slow = Member::running(settings(), &database.config, handler("slow"));
    produce(&broker, 0, &["order-0"]);
    slow.wait_for("its handler", || reached.is_cancelled());
    // Stopped, it gives its partition up without having finished.
    slow.cancel();
    let quick = Member::running(settings(), &database.config, handler("quick"));
    // The new owner takes the partition, and waits for the key or finds it free.
    wait_for("the new owner's lease", || {
        // More than one session works here besides the one that asks.
        database.ask_one::<i64>(
            "SELECT count(*) FROM pg_stat_activity \
             WHERE datname = current_database() AND wait_event_type = 'Lock'",
        ) > 0
            || database.effects() > 0
    });
    go.cancel();
    database.wait_for_effects(1);
    quick.stop();
    // In which way it ended is its own matter; that it did nothing is not.
    let _ = slow.end();
    database.assert_each_once(&["order-0"], &[], true);
    assert_eq!(database.ask::<String>("SELECT id FROM messages"), ["quick"]);
}
