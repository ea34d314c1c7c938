//! How a connection is dialed, with TLS or without, and within which limits.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::AbortHandle;
use tokio_postgres::config::Host;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, Error, Socket};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How late it is noticed that the server's machine is gone, at the most.
pub(super) const PEER_TIMEOUT: Duration = Duration::from_secs(30);

/// What speaks on a connection, and what ends it at once: whoever waits for an answer is told that
/// it is closed.
pub(super) type Dialed = (Client, AbortHandle);

/// Makes connections, whatever their stream is.
pub(super) trait Dial: Send + Sync {
    fn dial<'a>(&'a self, config: &'a Config) -> BoxFuture<'a, Result<Dialed, Error>>;
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
    fn dial<'a>(&'a self, config: &'a Config) -> BoxFuture<'a, Result<Dialed, Error>> {
        Box::pin(async move {
            let (client, connection) = config.connect(self.0.clone()).await?;
            let line = tokio::spawn(async move {
                // Whoever waits for an answer is told too.
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection to PostgreSQL ended");
                }
            });
            Ok((client, line.abort_handle()))
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

/// How long a connection may take, with the start-up and the password behind it: twice what the
/// addresses may take that are tried one after the other.
pub(super) fn open_limit(config: &Config) -> Duration {
    let each = config.get_connect_timeout().copied();
    let addresses = config.get_hosts().len().max(config.get_hostaddrs().len());
    let addresses = u32::try_from(addresses.max(1)).unwrap_or(u32::MAX);
    each.unwrap_or(CONNECT_TIMEOUT)
        .saturating_mul(2)
        .saturating_mul(addresses)
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
