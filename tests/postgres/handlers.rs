//! What a handler may do with its transaction, and what becomes of what it may not.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use idempotent_consumer::store::{PostgresStore, SqlError};
use idempotent_consumer::testkit::{EmbeddedBroker, Produced};
use idempotent_consumer::{
    ClientConfig, Counts, DeadLetter, Delivery, HandlerError, HandlerResult, IdempotentConsumer,
    RetryPolicy, SqlEffects, key,
};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;

use crate::postgres::connect;
use crate::shared;

const DEADLINE: Duration = Duration::from_secs(60);
const RECORDS: i64 = 3;
const INSERT: &str = "INSERT INTO notes (at, attempt) VALUES ($1, $2)";

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

/// Has a consumer handle three records, each with a key of its own; gives what is in the table then, and the counts. `None`
/// where there is no server.
fn handled(
    handler: impl AsyncFn(&Delivery<'_>, &mut SqlEffects) -> HandlerResult + Send + Sync + 'static,
) -> Option<(Vec<(i64, i32)>, Counts)> {
    handled_keys(["a", "b", "c"], handler)
}

/// The same with these keys. What is rejected goes to the dead letters.
fn handled_keys(
    keys: [&str; 3],
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
    broker.create_topic("letters", 1).unwrap();
    for key in keys {
        let record = Produced {
            key: Some(key.as_bytes()),
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
        .dead_letter(DeadLetter::to_topic("letters"))
        .retry(RetryPolicy::exponential(5, none, none))
        .build(PostgresStore::connect(config).unwrap())
        .unwrap();
    let stop = CancellationToken::new();
    let counts = runtime.block_on(async {
        let (report, ()) = tokio::join!(consumer.run(handler, stop.clone()), async {
            wait_for_the_end(&client).await;
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

async fn wait_for_the_end(client: &Client) {
    let begun = Instant::now();
    loop {
        let next = "SELECT coalesce(max(next), 0) FROM idempotent_consumer.partitions";
        let next: i64 = client.query_one(next, &[]).await.unwrap().get(0);
        if next == RECORDS {
            return;
        }
        assert!(begun.elapsed() < DEADLINE, "the head is at {next}");
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
            for word in [
                "COMMIT",
                "/* on purpose */ rollback",
                "SAVEPOINT mine",
                "SET lock_timeout = 0",
                "COPY notes TO STDOUT",
            ] {
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
fn what_passes_by_itself_is_no_failed_attempt_however_often_it_comes() {
    // More than a record is tried.
    let failures = AtomicU32::new(0);
    let handled = handled(async move |record, sql| {
        note(record, sql).await?;
        if record.offset() == 1 && failures.fetch_add(1, Ordering::SeqCst) < 7 {
            let fail = "DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$";
            let error = sql.execute(fail, &[]).await.unwrap_err();
            // Whatever the handler makes of it.
            return Err(HandlerError::reject(error));
        }
        Ok(())
    });
    let Some((notes, counts)) = handled else {
        return;
    };
    assert_eq!(notes, [(0, 1), (1, 1), (2, 1)]);
    assert_eq!((counts.retried, counts.dead_lettered), (0, 0));
}

#[test]
fn an_error_does_not_quote_rows() {
    let text = Arc::new(Mutex::new(String::new()));
    let said = Arc::clone(&text);
    let handled = handled(async move |record, sql| {
        if is_first_in_the_middle(record) {
            sql.execute("CREATE UNIQUE INDEX ON notes (attempt)", &[])
                .await?;
            let twice = "INSERT INTO notes VALUES (1, 4711), (2, 4711)";
            let error = sql.execute(twice, &[]).await.unwrap_err();
            *said.lock().unwrap() = error.to_string();
            return Err(error.into());
        }
        Ok(note(record, sql).await?)
    });
    let Some((notes, _)) = handled else { return };
    assert_eq!(notes, SECOND_IN_THE_MIDDLE);
    let text = text.lock().unwrap();
    assert!(text.contains("23505") && !text.contains("4711"), "{text}");
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

#[test]
fn a_record_whose_key_went_to_the_dead_letters_is_tried_and_then_answers_for_it() {
    let handled = handled_keys(["a", "a", "a"], async |record, sql| {
        note(record, sql).await?;
        if record.offset() == 0 {
            return Err(HandlerError::reject("a letter"));
        }
        Ok(())
    });
    let Some((notes, counts)) = handled else {
        return;
    };
    assert_eq!(notes, [(1, 1)]);
    assert_eq!((counts.dead_lettered, counts.duplicate), (1, 1));
}
