//! The message table: a message's id and the change to its order in one SQL transaction.
//!
//! Promise: each message changes its order once, however often it is sent and wherever a crash
//! comes. The store's mark, the row in `messages` and the order's new status are committed together.
//! Where it stops: what leaves the database (a mail, a call) is in no transaction.
//!
//! ```text
//! scripts/postgres up        # prints url=...
//! cargo run --release --example message_table -- URL
//! ```

use std::error::Error;

use idempotent_consumer::store::PostgresStore;
use idempotent_consumer::testkit::{EmbeddedBroker, Produced};
use idempotent_consumer::{
    ClientConfig, Delivery, HandlerResult, IdempotentConsumer, SqlEffects, key,
};
use tokio_postgres::{Client, Config, NoTls};
use tokio_util::sync::CancellationToken;

const TABLES: &str = "
    DROP SCHEMA IF EXISTS message_table CASCADE; DROP SCHEMA IF EXISTS message_table_seen CASCADE;
    CREATE SCHEMA message_table; SET search_path = message_table;
    CREATE TABLE messages (id text PRIMARY KEY, received timestamptz NOT NULL DEFAULT now());
    CREATE TABLE orders (id text PRIMARY KEY, status text NOT NULL, changes int NOT NULL);
    INSERT INTO orders SELECT 'order-' || n, 'new', 0 FROM generate_series(1, 3) AS n;";

/// The handler: nothing here begins, commits or rolls back.
async fn pay(message: &Delivery<'_>, sql: &mut SqlEffects) -> HandlerResult {
    let id = std::str::from_utf8(message.key().unwrap_or_default())?;
    let order = std::str::from_utf8(message.value().unwrap_or_default())?;
    let insert = "INSERT INTO message_table.messages (id) VALUES ($1) ON CONFLICT DO NOTHING";
    if sql.execute(insert, &[&id]).await? == 0 {
        // Somebody without this store has handled it: a copy changes nothing.
        return Ok(());
    }
    let update = "UPDATE message_table.orders SET status = 'paid', changes = changes + 1 \
         WHERE id = $1";
    if sql.execute(update, &[&order]).await? == 0 {
        return Err(format!("there is no {order}").into());
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1);
    let config: Config = url.ok_or("usage: message_table URL")?.parse()?;
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute(TABLES).await?;

    let broker = EmbeddedBroker::start()?;
    broker.create_topic("payments", 1)?;
    // Two are sent twice, as a producer does that did not hear the answer.
    for number in [1, 1, 2, 2, 3] {
        let (id, order) = (format!("payment-{number}"), format!("order-{number}"));
        let (key, value) = (Some(id.as_bytes()), Some(order.as_bytes()));
        let record = Produced {
            key,
            value,
            ..Produced::default()
        };
        broker.produce("payments", &[record])?;
    }

    let mut kafka = ClientConfig::new();
    kafka
        .set("bootstrap.servers", broker.bootstrap_servers())
        .set("group.id", "payments");
    let store = PostgresStore::options()
        .schema("message_table_seen")
        .connect(config)?;
    let consumer = IdempotentConsumer::builder(kafka)
        .topics(["payments"])
        .key(key::record_key())
        .build(store)?;
    let stop = CancellationToken::new();
    let run = async { Ok::<_, Box<dyn Error>>(consumer.run(pay, stop.clone()).await?) };
    let shown = async {
        show(&client).await?;
        stop.cancel();
        Ok(())
    };
    let (report, ()) = tokio::try_join!(run, shown)?;
    println!(
        "new={} duplicate={}",
        report.counts.new, report.counts.duplicate
    );
    Ok(())
}

/// Waits for the last payment and prints the orders.
async fn show(client: &Client) -> Result<(), Box<dyn Error>> {
    let paid = "SELECT count(*) FROM messages";
    while client.query_one(paid, &[]).await?.try_get::<_, i64>(0)? < 3 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    for row in client
        .query("SELECT id, status, changes FROM orders ORDER BY id", &[])
        .await?
    {
        let (id, status, changes): (&str, &str, i32) = (row.get(0), row.get(1), row.get(2));
        println!("{id} {status} changes={changes}");
    }
    Ok(())
}
