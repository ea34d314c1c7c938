//! What a handler may do with its transaction, and what becomes of what it may not.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use idempotent_consumer::store::{PostgresStore, SqlError};
use idempotent_consumer::testkit::{EmbeddedBroker, Produced};
use idempotent_consumer::{
    ClientConfig, Counts, Delivery, HandlerResult, IdempotentConsumer, RetryPolicy, SqlEffects, key,
};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;

use crate::postgres::connect;
use crate::shared;

const DEADLINE: Duration = Duration::from_secs(60);
/// Three records, and nothing in the table before them.
const RECORDS: i64 = 3;
const INSERT: &str = "INSERT INTO notes (at, attempt) VALUES ($1, $2)";

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

/// Has a consumer handle three records; gives what is in the table then, and the counts. `None`
/// where there is no server.
fn handled(
    handler: impl AsyncFn(&Delivery<'_>, &mut SqlEffects) -> HandlerResult + Send + Sync + 'static,
) -> Option<(Vec<(i64, i32)>, Counts)> {
    let server = shared::server()?;
    let runtime = runtime();
    let config = runtime.block_on(server.database());
    let client = runtime.block_on(connect(&config));
    let table = "CREATE TABLE notes (at bigint, attempt integer)";
    runtime.block_on(client.batch_execute(table)).unwrap();
    let broker = EmbeddedBroker::start().unwrap();
    broker.create_topic("orders", 1).unwrap();
    for number in 0..RECORDS {
        let id = number.to_string();
        let record = Produced {
            key: Some(id.as_bytes()),
            ..Produced::default()
        };
        broker.produce("orders", &[record]).unwrap();
    }
    let mut kafka = ClientConfig::new();
    kafka
        .set("bootstrap.servers", broker.bootstrap_servers())
        .set("group.id", "notes");
    let none = Duration::from_millis(1);
    let consumer = IdempotentConsumer::builder(kafka)
        .topics(["orders"])
        .key(key::record_key())
        .retry(RetryPolicy::exponential(5, none, none))
        .build(PostgresStore::connect(config).unwrap())
        .unwrap();
    let stop = CancellationToken::new();
    let counts = runtime.block_on(async {
        let (report, ()) = tokio::join!(consumer.run(handler, stop.clone()), async {
            wait_for_marks(&client).await;
            stop.cancel();
        });
        report.unwrap().counts
    });
    let rows = runtime
        .block_on(client.query("SELECT at, attempt FROM notes ORDER BY at", &[]))
        .unwrap();
    let notes = rows.iter().map(|row| (row.get(0), row.get(1)));
    Some((notes.collect(), counts))
}

async fn wait_for_marks(client: &Client) {
    let begun = Instant::now();
    loop {
        let count = "SELECT count(*) FROM idempotent_consumer.marks";
        let count: i64 = client.query_one(count, &[]).await.unwrap().get(0);
        if count == RECORDS {
            return;
        }
        assert!(begun.elapsed() < DEADLINE, "{count} marks");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn note(record: &Delivery<'_>, sql: &SqlEffects) -> Result<(), SqlError> {
    let attempt = i32::try_from(record.attempt()).unwrap();
    sql.execute(INSERT, &[&record.offset(), &attempt]).await?;
    Ok(())
}

/// Each record's attempt that stands: the second of the one in the middle.
const SECOND_IN_THE_MIDDLE: [(i64, i32); 3] = [(0, 1), (1, 2), (2, 1)];

fn is_first_in_the_middle(record: &Delivery<'_>) -> bool {
    record.offset() == 1 && record.attempt() == 1
}

#[test]
fn a_handler_cannot_end_its_transaction_and_what_it_wrote_is_undone() {
    let handled = handled(async |record, sql| {
        note(record, sql).await?;
        if is_first_in_the_middle(record) {
            for word in ["COMMIT", "/* on purpose */ rollback", "SAVEPOINT mine"] {
                let refused = sql.execute(word, &[]).await;
                assert!(
                    matches!(refused, Err(SqlError::Refused { .. })),
                    "{refused:?}"
                );
            }
        }
        // Whatever it says: not all that it asked for was done.
        Ok(())
    });
    let Some((notes, _)) = handled else { return };
    assert_eq!(notes, SECOND_IN_THE_MIDDLE);
}

#[test]
fn what_a_function_tries_the_server_refuses() {
    let handled = handled(async |record, sql| {
        note(record, sql).await?;
        if is_first_in_the_middle(record) {
            let commit = "DO $$ BEGIN COMMIT; END $$";
            let refused = sql.execute(commit, &[]).await.unwrap_err();
            let code = refused.code().map(|code| code.code().to_owned());
            assert_eq!(code.as_deref(), Some("2D000"), "{refused}");
            return Err(refused.into());
        }
        Ok(())
    });
    let Some((notes, _)) = handled else { return };
    assert_eq!(notes, SECOND_IN_THE_MIDDLE);
}

#[test]
fn a_failed_statement_that_the_handler_hides_makes_its_record_fail() {
    let handled = handled(async |record, sql| {
        note(record, sql).await?;
        if is_first_in_the_middle(record) {
            sql.query("SELECT 1 / 0", &[]).await.unwrap_err();
        }
        Ok(())
    });
    let Some((notes, _)) = handled else { return };
    assert_eq!(notes, SECOND_IN_THE_MIDDLE);
}

#[test]
fn a_failed_statement_that_nobody_waited_for_makes_its_record_fail() {
    let handled = handled(async |record, sql| {
        note(record, sql).await?;
        if is_first_in_the_middle(record) {
            // Prepared before, so that the first poll sends it.
            let divide = "SELECT 1 / ($1::bigint - 1)";
            sql.query(divide, &[&5_i64]).await?;
            let mut sent = pin!(sql.query(divide, &[&1_i64]));
            let answer = sent.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(answer, Poll::Pending), "it was answered at once");
        }
        Ok(())
    });
    let Some((notes, _)) = handled else { return };
    assert_eq!(notes, SECOND_IN_THE_MIDDLE);
}

#[test]
fn a_handler_that_sends_nothing_leaves_a_mark_all_the_same() {
    let handled = handled(async |record, sql| match record.offset() {
        1 => Ok(()),
        _ => Ok(note(record, sql).await?),
    });
    let Some((notes, counts)) = handled else {
        return;
    };
    assert_eq!(notes, [(0, 1), (2, 1)]);
    assert_eq!(counts.new, 3);
}
