//! Takes connections, as many as are allowed, and ends them when the proxy stops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::control::Control;
use super::error::Problem;

/// Connections open at once.
const CONNECTIONS_MAX: usize = 128;

/// Pause after a connection could not be taken, for example for want of file descriptors: the
/// same error would come back at once, for as long as it lasts.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn run(
    listener: TcpListener,
    upstream: SocketAddr,
    control: Arc<Control>,
    stop: CancellationToken,
) {
    // Dropped on return, which ends every connection.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // In this order: connections that ended make room before a new one is counted.
            biased;
            () = stop.cancelled() => return,
            Some(ended) = connections.join_next() => log_panic(ended),
            accepted = listener.accept() => match accepted {
                Ok((client, peer)) => {
                    admit(client, peer, upstream, &control, &mut connections);
                }
                Err(error) => {
                    tracing::warn!("cannot take a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

fn admit(
    client: TcpStream,
    peer: SocketAddr,
    upstream: SocketAddr,
    control: &Arc<Control>,
    connections: &mut JoinSet<()>,
) {
    let Some(cuts) = control.admit() else {
        control.board.count(|stats| stats.refused += 1);
        return;
    };
    if connections.len() >= CONNECTIONS_MAX {
        control.board.count(|stats| stats.refused += 1);
        control.board.report(Problem::TooManyConnections {
            peer,
            limit: CONNECTIONS_MAX,
        });
        return;
    }
    let connection = Connection {
        peer,
        upstream,
        cuts,
        control: Arc::clone(control),
    };
    connections.spawn(connection.run(client));
}

fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!("a connection ended by a fault of the proxy: {error}");
    }
}
