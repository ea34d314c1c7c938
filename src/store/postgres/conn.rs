//! One connection: set up like all others, its statements prepared once, its answers waited for no
//! longer than they may take.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, Row, SimpleQueryMessage, Statement, ToStatement};

use super::connect::{Dial, PEER_TIMEOUT, open_limit};
use super::error::Failure;
use super::options::PostgresOptions;
use crate::store::StoreError;

/// Texts that a connection keeps prepared. A handler that builds its statements from values would
/// otherwise fill the server's memory.
const STATEMENTS_MAX: usize = 256;
/// What an answer may take beyond the server's own limit for its statement.
const ANSWER_SLACK: Duration = Duration::from_secs(10);
const STANDBY: &str = "the server is a standby, which cannot be written: name the primary, or add \
     target_session_attrs=read-write";

pub(super) struct Conn {
    client: Client,
    line: AbortHandle,
    statements: Mutex<HashMap<Box<str>, Statement>>,
    answer_limit: Option<Duration>,
    /// Questions whose answers have not come, also where nobody waits for them any more.
    unanswered: AtomicUsize,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Look-ups by key, beside each other.
    Reading,
    /// Transactions, the store's own or a lease's.
    Writing,
}

impl Conn {
    pub(super) async fn open(
        dial: &dyn Dial,
        config: &Config,
        options: &PostgresOptions,
        what_for: Use,
        place: &str,
    ) -> Result<Self, Failure> {
        let limit = open_limit(config);
        let transient = |message: String| Failure {
            transient: true,
            ..Failure::lasting(StoreError::Database {
                place: place.to_owned(),
                operation: "connecting",
                message,
            })
        };
        let opened = async {
            let (client, line) = dial.dial(config).await?;
            let answer_limit = options.statement_timeout.checked_add(ANSWER_SLACK);
            let conn = Self {
                client,
                line,
                statements: Mutex::default(),
                answer_limit: answer_limit.filter(|_| !options.statement_timeout.is_zero()),
                unanswered: AtomicUsize::default(),
            };
            let settings = settings(options, what_for);
            let answers = conn.in_time(conn.client.simple_query(&settings)).await?;
            let is_standby = answers.iter().rev().find_map(|answer| match answer {
                SimpleQueryMessage::Row(row) => row.get(0),
                _ => None,
            });
            Ok((conn, is_standby == Some("t")))
        };
        match timeout(limit, opened).await {
            Ok(Ok((_, true))) => Err(transient(STANDBY.to_owned())),
            Ok(Ok((conn, false))) => Ok(conn),
            Ok(Err(error)) => Err(Failure::connecting(place, &error)),
            Err(_) => Err(transient(format!("it took longer than {limit:?}"))),
        }
    }

    /// For a handler's statements: how long those take is not this store's to say.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Ends it without waiting for what is under way: the server finds the line closed, and rolls
    /// back.
    pub(super) fn close(&self) {
        self.line.abort();
    }

    pub(super) async fn execute<T: ?Sized + ToStatement>(
        &self,
        statement: &T,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Error> {
        self.in_time(self.client.execute(statement, parameters))
            .await
    }

    pub(super) async fn query<T: ?Sized + ToStatement>(
        &self,
        statement: &T,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        self.in_time(self.client.query(statement, parameters)).await
    }

    pub(super) async fn query_one<T: ?Sized + ToStatement>(
        &self,
        statement: &T,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, Error> {
        self.in_time(self.client.query_one(statement, parameters))
            .await
    }

    pub(super) async fn query_opt<T: ?Sized + ToStatement>(
        &self,
        statement: &T,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Error> {
        self.in_time(self.client.query_opt(statement, parameters))
            .await
    }

    pub(super) async fn batch_execute(&self, statements: &str) -> Result<(), Error> {
        self.in_time(self.client.batch_execute(statements)).await
    }

    /// Waits for an answer, and ends the connection where none comes: a server that does not
    /// answer would otherwise be waited for without an end.
    async fn in_time<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let Some(limit) = self.answer_limit else {
            return Box::pin(self.counted(answer)).await;
        };
        // On the heap, or each question would make its caller's future larger by its own.
        let mut answer = Box::pin(self.counted(answer));
        if let Ok(answer) = timeout(limit, answer.as_mut()).await {
            return answer;
        }
        tracing::warn!(
            limit_ms = limit.as_millis(),
            "PostgreSQL does not answer; its connection is given up"
        );
        self.close();
        answer.await
    }

    /// An answer that is not waited for to its end stays counted.
    pub(super) async fn counted<T>(&self, answer: impl Future<Output = T>) -> T {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        let answer = answer.await;
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
        answer
    }

    /// A statement that has been prepared already.
    pub(super) fn known(&self, text: &str) -> Option<Statement> {
        let statements = self.statements.lock();
        let statements = statements.unwrap_or_else(PoisonError::into_inner);
        statements.get(text).cloned()
    }

    /// Prepares it, once.
    pub(super) async fn prepared(&self, text: &str) -> Result<Statement, Error> {
        if let Some(statement) = self.known(text) {
            return Ok(statement);
        }
        self.in_time(self.prepare(text)).await
    }

    /// Prepares it, however long that takes: behind other statements of the same handler.
    pub(super) async fn prepare(&self, text: &str) -> Result<Statement, Error> {
        let statement = self.client.prepare(text).await?;
        let statements = self.statements.lock();
        let mut statements = statements.unwrap_or_else(PoisonError::into_inner);
        if statements.len() >= STATEMENTS_MAX {
            statements.clear();
        }
        statements.insert(text.into(), statement.clone());
        Ok(statement)
    }

    /// Prepares it again at its next use: a table that it names may have changed.
    pub(super) fn forget(&self, text: &str) {
        let statements = self.statements.lock();
        let mut statements = statements.unwrap_or_else(PoisonError::into_inner);
        statements.remove(text);
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        // It would first wait for the answers: a claim that nobody wants any more would keep its
        // keys for as long as it waits for another's.
        if *self.unanswered.get_mut() > 0 {
            self.close();
        }
    }
}

/// What each session has, whatever its role or database sets; the answer says last whether the
/// server is a standby.
fn settings(options: &PostgresOptions, what_for: Use) -> String {
    let ms = |limit: Duration| i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
    // A plan that was made while the tables were empty reads all of them once they are not; by key
    // is always right for look-ups. A handler's statements are left to the planner.
    let by_key = match what_for {
        Use::Reading => "SET enable_seqscan = off;",
        Use::Writing => "",
    };
    let peer = PEER_TIMEOUT.as_secs();
    // A server that waits for a lock notices from version 14 on that nobody waits for it.
    format!(
        "SET default_transaction_isolation = 'read committed'; \
         SET default_transaction_read_only = off; \
         SET statement_timeout = {}; SET lock_timeout = {}; \
         SET idle_in_transaction_session_timeout = {}; \
         SET tcp_user_timeout = {}; SET tcp_keepalives_idle = {}; \
         SET tcp_keepalives_interval = {}; SET tcp_keepalives_count = 3; {by_key} \
         SELECT set_config(name, CASE name WHEN 'synchronous_commit' THEN 'on' ELSE '2s' END, \
         false) FROM pg_catalog.pg_settings WHERE name = 'client_connection_check_interval' \
         OR name = 'synchronous_commit' AND setting = 'off'; \
         SELECT pg_catalog.pg_is_in_recovery()",
        ms(options.statement_timeout),
        ms(options.lock_timeout),
        ms(options.idle_in_transaction_timeout),
        ms(PEER_TIMEOUT),
        peer / 2,
        peer / 6,
    )
}
