//! Connections: made by a dialer that knows of TLS, set up alike, with their statements prepared
//! once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_postgres::config::Host;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, Error, Socket, Statement};

use super::options::PostgresOptions;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How late it is noticed that the server's machine is gone, at the most.
const PEER_TIMEOUT: Duration = Duration::from_secs(30);
/// Texts that a connection keeps prepared. A handler that builds its statements from values would
/// otherwise fill the server's memory.
const STATEMENTS_MAX: usize = 256;

/// Makes connections, whatever their stream is.
pub(super) trait Dial: Send + Sync {
    fn dial<'a>(&'a self, config: &'a Config) -> BoxFuture<'a, Result<Client, Error>>;
}

/// With TLS, or with what says that there is none.
pub(super) struct Tls<T>(pub(super) T);

impl<T> Dial for Tls<T>
where
    T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    T::Stream: Send,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    fn dial<'a>(&'a self, config: &'a Config) -> BoxFuture<'a, Result<Client, Error>> {
        Box::pin(async move {
            let (client, connection) = config.connect(self.0.clone()).await?;
            tokio::spawn(async move {
                // Whoever waits for an answer is told too.
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection to PostgreSQL ended");
                }
            });
            Ok(client)
        })
    }
}

/// The limits that a connection has where the user has set none.
pub(super) fn with_limits(mut config: Config) -> Config {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(PEER_TIMEOUT);
    }
    if config.get_keepalives_interval().is_none() && config.get_keepalives_retries().is_none() {
        config.keepalives_idle(PEER_TIMEOUT / 2);
        config.keepalives_interval(PEER_TIMEOUT / 6);
        config.keepalives_retries(3);
    }
    if config.get_application_name().is_none() {
        config.application_name("idempotent-consumer");
    }
    config
}

/// Server, database and schema, for messages. Never the password.
pub(super) fn place(config: &Config, schema: &str) -> String {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(at, host)| {
        let name = match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        };
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        format!("{name}:{port}")
    });
    let addresses = config.get_hostaddrs().iter().map(ToString::to_string);
    let servers: Vec<_> = hosts.collect();
    let servers = if servers.is_empty() {
        addresses.collect()
    } else {
        servers
    };
    // The server takes the user's name where none is given.
    let user = config.get_user().unwrap_or("its user's");
    let database = config.get_dbname().unwrap_or(user);
    format!(
        "schema {schema:?} of database {database:?} at {}",
        servers.join(",")
    )
}

/// One connection, with the statements that it has prepared.
pub(super) struct Conn {
    client: Client,
    statements: Mutex<HashMap<Box<str>, Statement>>,
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
    ) -> Result<Self, Error> {
        let client = dial.dial(config).await?;
        let ms = |limit: Duration| i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
        // A plan that was made while the tables were empty reads all of them once they are not; by
        // key is always right for look-ups. A handler's statements are left to the planner.
        let by_key = match what_for {
            Use::Reading => "SET enable_seqscan = off;",
            Use::Writing => "",
        };
        let settings = format!(
            "SET statement_timeout = {}; SET lock_timeout = {}; \
             SET idle_in_transaction_session_timeout = {}; {by_key}",
            ms(options.statement_timeout),
            ms(options.lock_timeout),
            ms(options.idle_in_transaction_timeout),
        );
        client.batch_execute(&settings).await?;
        Ok(Self {
            client,
            statements: Mutex::default(),
        })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_names_everything_but_the_password() {
        let config: Config = "postgresql://shop:s3cret@one:5433,two/orders"
            .parse()
            .unwrap();
        let place = place(&config, "seen");
        assert_eq!(
            place,
            "schema \"seen\" of database \"orders\" at one:5433,two:5432"
        );
    }

    #[test]
    fn limits_that_the_user_has_set_are_kept() {
        let mut config = Config::new();
        config.connect_timeout(Duration::from_secs(3));
        config.application_name("shop");
        let config = with_limits(config);
        assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(3)));
        assert_eq!(config.get_application_name(), Some("shop"));
        assert_eq!(config.get_tcp_user_timeout(), Some(&PEER_TIMEOUT));
    }
}
