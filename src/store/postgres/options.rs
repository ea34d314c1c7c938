//! How to reach a store in PostgreSQL, and how long it waits for what.

use std::fmt;
use std::time::Duration;

use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, NoTls, Socket};

use super::PostgresStore;
use super::connect::{Dial, Tls};
use crate::store::StoreError;

/// How to open a [`PostgresStore`].
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    pub(super) schema: String,
    pub(super) create: bool,
    pub(super) statement_timeout: Duration,
    pub(super) lock_timeout: Duration,
    pub(super) idle_in_transaction_timeout: Duration,
    pub(super) outage_limit: Duration,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            schema: "idempotent_consumer".to_owned(),
            create: true,
            statement_timeout: Duration::from_secs(60),
            lock_timeout: Duration::from_secs(20),
            idle_in_transaction_timeout: Duration::from_secs(300),
            outage_limit: Duration::from_secs(30),
        }
    }
}

impl PostgresOptions {
    /// The schema of the store's tables: `idempotent_consumer` by default. One schema serves one
    /// group; others in the same database need schemas of their own.
    #[must_use]
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// Whether schema and tables are made where there are none: true by default. With `false` the
    /// user needs no right to create anything.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// How long one statement may run, a handler's included: the server's `statement_timeout`, 60 s
    /// by default. What takes longer is tried again. A connection on which the store's own statements
    /// have no answer 10 s after that is closed.
    #[must_use]
    pub fn statement_timeout(mut self, limit: Duration) -> Self {
        self.statement_timeout = limit;
        self
    }

    /// How long a statement waits for rows that another transaction has: the server's
    /// `lock_timeout`, 20 s by default. A key that another owner has in an open transaction is
    /// waited for that long, and then again, with a warning.
    #[must_use]
    pub fn lock_timeout(mut self, limit: Duration) -> Self {
        self.lock_timeout = limit;
        self
    }

    /// How long a transaction may stay open without a statement, while a handler does something
    /// else: the server's `idle_in_transaction_session_timeout`, 5 min by default. It bounds how
    /// long a process that hangs keeps its keys from others.
    #[must_use]
    pub fn idle_in_transaction_timeout(mut self, limit: Duration) -> Self {
        self.idle_in_transaction_timeout = limit;
        self
    }

    /// How long a database that cannot be reached, or refuses for reasons that pass, is tried
    /// again before the call fails: 30 s by default, with pauses from 50 ms up to 2 s. Rows that
    /// another transaction has are no outage: those are waited for until the server must have ended
    /// it, which is the [idle time](Self::idle_in_transaction_timeout), the
    /// [lock time](Self::lock_timeout) and 10 s.
    #[must_use]
    pub fn outage_limit(mut self, limit: Duration) -> Self {
        self.outage_limit = limit;
        self
    }

    /// Connects without TLS and opens the store.
    ///
    /// # Errors
    /// As [`connect_with`](Self::connect_with).
    pub fn connect(self, config: Config) -> Result<PostgresStore, StoreError> {
        self.connect_with(config, NoTls)
    }

    /// Connects, with TLS by a maker of your choice, and opens the store: makes its schema where
    /// there is none, or checks the one that is there.
    ///
    /// Blocks until it is done; may be called inside of a runtime. A time limit for connecting (10 s)
    /// and for a peer that vanished (30 s) is set where `config` has none; with the start-up behind
    /// it a connection may take twice as long, for each host.
    ///
    /// # Errors
    /// [`StoreError::Database`] where the server is not reached within the
    /// [limit](Self::outage_limit), refuses, or is older than version 13; where the schema is
    /// another's, was made by a newer version, or is not there and not to be [made](Self::create).
    pub fn connect_with<T>(self, config: Config, tls: T) -> Result<PostgresStore, StoreError>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let dial: Box<dyn Dial> = Box::new(Tls(tls));
        PostgresStore::open(self, config, dial)
    }
}

/// A name in a statement, whatever is in it.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('"', "\"\""))
    }
}

/// What PostgreSQL would cut a longer name to, in silence.
const NAME_BYTES_MAX: usize = 63;

impl PostgresOptions {
    /// Why the schema's name cannot be one, if it cannot.
    pub(super) fn bad_schema(&self) -> Option<&'static str> {
        let name = &self.schema;
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
            return Some("a schema's name has 1 to 63 bytes, none of them zero");
        }
        let reserved = name.starts_with("pg_") || name == "information_schema";
        reserved.then_some("the schemas pg_* and information_schema are the server's own")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schemas_name_is_quoted_whatever_is_in_it() {
        let name = "a\"; DROP TABLE x; --";
        assert_eq!(Quoted(name).to_string(), "\"a\"\"; DROP TABLE x; --\"");
    }

    #[test]
    fn a_name_that_the_server_would_cut_or_keeps_for_itself_is_refused() {
        let long = "x".repeat(64);
        for name in ["", "a\0b", "pg_mine", "information_schema", &long] {
            let options = PostgresOptions::default().schema(name);
            assert!(options.bad_schema().is_some(), "{name:?}");
        }
        assert!(PostgresOptions::default().bad_schema().is_none());
    }
}
