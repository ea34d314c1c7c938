//! The article's example: a message table and an order, in one transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use idempotent_consumer::store::SqlEffects;
use idempotent_consumer::{Delivery, HandlerError, HandlerResult, RetryPolicy};

use crate::database::Database;
use crate::member::{Member, broker, builder, key_of, numbered, produce};
use crate::shared;

const ORDERS: usize = 5;

/// Orders that wait to be paid.
fn waiting(database: &Database) {
    database.run(&format!(
        "INSERT INTO orders SELECT 'order-' || n, 'new', 0 FROM generate_series(0, {ORDERS} - 1) n"
    ));
}

/// `id=status*changes` of each order.
fn orders(database: &Database) -> Vec<String> {
    database.ask("SELECT id || '=' || status || '*' || changes FROM orders ORDER BY id")
}

async fn pay(record: &Delivery<'_>, sql: &mut SqlEffects) -> HandlerResult {
    let id = key_of(record);
    sql.execute("INSERT INTO messages VALUES ($1)", &[&id])
        .await?;
    let paid = "UPDATE orders SET status = 'paid', changes = changes + 1 WHERE id = $1";
    sql.execute(paid, &[&id]).await?;
    Ok(())
}

#[test]
fn a_message_and_its_order_change_once_however_often_the_message_comes() {
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(2));
    waiting(&database);
    let ids = numbered(0..ORDERS);
    for _ in 0..3 {
        produce(&broker, 0, &ids);
    }
    // Into the other partition, as another session of a producer might.
    produce(&broker, 1, &ids);
    let member = Member::running(builder(broker.bootstrap_servers()), &database.config, pay);
    // What comes behind all copies.
    for partition in [0, 1] {
        produce(&broker, partition, &[format!("last-{partition}")]);
    }
    member.wait_for("the last messages", || {
        database.ask_one::<i64>("SELECT count(*) FROM messages WHERE id LIKE 'last-%'") == 2
    });
    let report = member.stop();
    let paid: Vec<_> = ids.iter().map(|id| format!("{id}=paid*1")).collect();
    assert_eq!(orders(&database), paid);
    let messages: Vec<String> =
        database.ask("SELECT id FROM messages WHERE id NOT LIKE 'last-%' ORDER BY id");
    assert_eq!(messages, ids);
    let copies = u64::try_from(3 * ORDERS).unwrap();
    assert_eq!(
        (report.counts.duplicate, report.counts.retried),
        (copies, 0)
    );
}

#[test]
fn where_the_message_table_refuses_the_insert_nothing_of_the_handler_remains() {
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(1));
    waiting(&database);
    // Message 2 has been here before the store was: by another program.
    database.run("INSERT INTO messages VALUES ('order-2')");
    let ids = numbered(0..ORDERS);
    produce(&broker, 0, &ids);
    let refusals = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&refusals);
    let handler = async move |record: &Delivery<'_>, sql: &mut SqlEffects| {
        let id = key_of(record);
        // The order first, so that there is something to be undone.
        let paid = "UPDATE orders SET status = 'paid', changes = changes + 1 WHERE id = $1";
        sql.execute(paid, &[&id]).await?;
        let insert = "INSERT INTO messages VALUES ($1)";
        if let Err(refused) = sql.execute(insert, &[&id]).await {
            counted.fetch_add(1, Ordering::SeqCst);
            return Err(HandlerError::reject(refused));
        }
        Ok(())
    };
    let never = builder(broker.bootstrap_servers()).retry(RetryPolicy::never());
    let member = Member::running(never, &database.config, handler);
    let error = member.end().unwrap_err().to_string();
    assert!(error.contains("duplicate key"), "{error}");
    assert_eq!(refusals.load(Ordering::SeqCst), 1);
    // What came before it in the same batch stands, and nothing of it or behind it does.
    let expected = ["paid*1", "paid*1", "new*0", "new*0", "new*0"];
    let expected: Vec<_> = ids
        .iter()
        .zip(expected)
        .map(|(id, state)| format!("{id}={state}"))
        .collect();
    assert_eq!(orders(&database), expected);
}

#[test]
fn a_message_table_that_counts_0_makes_the_copy_do_nothing() {
    let Some(server) = shared::server() else {
        return;
    };
    let (database, broker) = (Database::new(&server), broker(1));
    waiting(&database);
    database.run("INSERT INTO messages VALUES ('order-2')");
    let ids = numbered(0..ORDERS);
    produce(&broker, 0, &ids);
    let handler = async |record: &Delivery<'_>, sql: &mut SqlEffects| {
        let id = key_of(record);
        let insert = "INSERT INTO messages VALUES ($1) ON CONFLICT DO NOTHING";
        if sql.execute(insert, &[&id]).await? == 1 {
            let paid = "UPDATE orders SET status = 'paid', changes = changes + 1 WHERE id = $1";
            sql.execute(paid, &[&id]).await?;
        }
        Ok(())
    };
    let member = Member::running(
        builder(broker.bootstrap_servers()),
        &database.config,
        handler,
    );
    member.wait_for("all messages", || {
        database.ask_one::<i64>("SELECT count(*) FROM messages") == 5
    });
    assert_eq!(member.stop().counts.new, 5);
    assert_eq!(
        database.ask::<String>("SELECT id FROM orders WHERE changes <> 1"),
        ["order-2"]
    );
}
