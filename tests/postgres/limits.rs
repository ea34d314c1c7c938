//! What the store asks again, what it bounds, and what it sees to on each connection.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use idempotent_consumer::store::{Lease, PostgresStore, SqlEffects, Store as _, StoreError};
use idempotent_consumer::{Delivery, NextOffset, TopicPartition};
use tokio_postgres::Config;
use tokio_util::sync::CancellationToken;

use crate::database::{DEADLINE, Database, wait_for};
use crate::member::{Member, TOPIC, broker, builder, key_of, note, produce, store};
use crate::shared;

fn leased(database: &Database) -> (PostgresStore, Lease) {
    let store = store(&database.config);
    let lease = store.lease(&TopicPartition::new(TOPIC, 0)).unwrap();
    (store, lease)
}

#[test]
fn what_another_member_has_expired_is_known_when_it_is_asked_for() {
    let Some(server) = shared::server() else {
        return;
    };
    let database = Database::new(&server);
    let (store, lease) = leased(&database);
    assert_eq!(store.retained_from(lease.id), NextOffset::ZERO);
    database.run("UPDATE idempotent_consumer.partitions SET retained_from = 7");
    assert_eq!(Some(store.retained_from(lease.id)), NextOffset::new(7));
}

#[test]
fn up_to_where_keys_are_restored_outlives_the_member_and_never_goes_back() {
    let Some(server) = shared::server() else {
        return;
    };
    let database = Database::new(&server);
    let (first, old) = leased(&database);
    let at = |offset| NextOffset::new(offset).unwrap();
    assert_eq!(first.restore_until(old.id), NextOffset::ZERO);
    first.restores(&old, at(40)).unwrap();
    first.restores(&old, at(30)).unwrap();
    assert_eq!(first.restore_until(old.id), at(40));
    let (second, new) = leased(&database);
    assert_eq!(second.restore_until(new.id), at(40));
    let refused = first.restores(&old, at(50));
    assert!(
        matches!(refused, Err(StoreError::Fenced { .. })),
        "{refused:?}"
    );
    assert_eq!(
        database.ask::<i64>("SELECT restore_until FROM idempotent_consumer.partitions"),
        [40]
    );
    second.restores(&new, at(50)).unwrap();
    assert_eq!(second.restore_until(new.id), at(50));
}

#[test]
fn a_server_that_takes_a_connection_and_says_nothing_is_given_up() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut config = Config::new();
    config
        .host("127.0.0.1")
        .port(silent.local_addr().unwrap().port())
        .user("nobody")
        .connect_timeout(Duration::from_millis(100));
    let short = PostgresStore::options().outage_limit(Duration::from_millis(300));
    let begun = Instant::now();
    let error = short.connect(config).err().unwrap();
    assert!(error.to_string().contains("took longer than"), "{error}");
    assert!(begun.elapsed() < DEADLINE);
}

#[test]
fn what_a_role_or_a_database_sets_keeps_nothing_from_being_written() {
    let Some(server) = shared::server() else {
        return;
    };
    let database = Database::new(&server);
    let name = database.config.get_dbname().unwrap();
    for setting in [
        "default_transaction_read_only = on",
        "default_transaction_isolation = 'serializable'",
        "synchronous_commit = off",
    ] {
        database.run(&format!("ALTER DATABASE {name} SET {setting}"));
    }
    let broker = broker(1);
    produce(&broker, 0, &["order-0"]);
    let handler = async |record: &Delivery<'_>, sql: &mut SqlEffects| {
        for (setting, value) in [
            ("transaction_isolation", "read committed"),
            ("transaction_read_only", "off"),
            ("synchronous_commit", "on"),
            ("tcp_keepalives_idle", "15"),
        ] {
            let row = sql.query_one(&format!("SHOW {setting}"), &[]).await?;
            assert_eq!(row.get::<_, &str>(0), value, "{setting}");
        }
        note(record, sql).await
    };
    let member = Member::running(
        builder(broker.bootstrap_servers()),
        &database.config,
        handler,
    );
    database.wait_for_effects(1);
    member.stop();
}

#[test]
fn records_before_one_whose_key_another_transaction_has_are_handled_meanwhile() {
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(2));
    let go = CancellationToken::new();
    let wait = go.clone();
    let handler = async move |record: &Delivery<'_>, sql: &mut SqlEffects| {
        note(record, sql).await?;
        if key_of(record) == "same" {
            wait.cancelled().await;
        }
        Ok(())
    };
    let members = [0, 1].map(|_| {
        let options = PostgresStore::options().lock_timeout(Duration::from_millis(200));
        let store = options.connect(database.config.clone()).unwrap();
        Member::with_store(builder(broker.bootstrap_servers()), store, handler.clone())
    });
    for (partition, key) in (0..).zip(["hello-0", "hello-1"]) {
        produce(&broker, partition, &[key]);
    }
    database.wait_for_effects(2);
    produce(&broker, 0, &["same"]);
    let open = "SELECT count(*) FROM pg_stat_activity \
        WHERE datname = current_database() AND state = 'idle in transaction'";
    wait_for("the first to have the key", || {
        database.ask_one::<i64>(open) > 0
    });
    produce(&broker, 1, &["before", "same", "behind"]);
    database.wait_for_effects(3);
    go.cancel();
    database.wait_for_effects(5);
    for member in members {
        member.stop();
    }
    let keys = ["hello-0", "hello-1", "same", "before", "behind"];
    database.assert_each_once(&keys, &[], true);
}

#[test]
fn a_claim_that_nobody_waits_for_any_more_does_not_keep_waiting() {
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(1));
    let long = PostgresStore::options()
        .lock_timeout(DEADLINE * 2)
        .statement_timeout(DEADLINE * 2);
    // It outlives its consumer, and so do its connections.
    let store = Arc::new(long.connect(database.config.clone()).unwrap());
    let operator = Database::at(database.config.clone());
    operator.run("BEGIN; LOCK TABLE idempotent_consumer.marks IN SHARE MODE");
    produce(&broker, 0, &["order-0"]);
    let member = Member::with_store(
        builder(broker.bootstrap_servers()),
        Arc::clone(&store),
        note,
    );
    let waiting = "SELECT count(*) FROM pg_stat_activity \
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    member.wait_for("the claim to wait", || database.ask_one::<i64>(waiting) > 0);
    member.stop();
    wait_for("the claim to be given up", || {
        database.ask_one::<i64>(waiting) == 0
    });
    operator.run("ROLLBACK");
    assert_eq!(database.effects(), 0);
}
