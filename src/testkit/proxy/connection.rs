//! One client's connection and the broker's behind it.
//!
//! ```text
//! client ──▶ requests::take ──▶ queue, each with its time ──▶ requests::forward ──▶ broker
//!        ◀────────────────────────── replies::give_back ◀──────────────────────────
//! ```
//!
//! The two directions end apart. A client that gave up closes its side while its request is
//! still held back; that request is forwarded all the same, which is what a slow network does
//! and what leaves copies in the log.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::control::{Control, State};
use super::error::Problem;
use super::in_flight::InFlight;
use super::{replies, requests};

/// Time for the broker to take a connection; on loopback it does so at once or not at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time for the broker to answer and close once nothing more is coming for it.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// What both directions of a connection know.
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    pub(super) upstream: SocketAddr,
    /// [`State::cuts`](super::control::State::cuts) when the connection was taken.
    pub(super) cuts: u64,
    pub(super) control: Arc<Control>,
}

impl Connection {
    pub(super) async fn run(self, client: TcpStream) {
        let _open = Open::count(&self.control);
        let mut state = self.control.subscribe();
        tokio::select! {
            // An error would mean that the control is gone; this connection holds it.
            _ = state.wait_for(|state| state.cuts != self.cuts) => {}
            () = self.relay(client) => {}
        }
    }

    async fn relay(&self, client: TcpStream) {
        let broker = match self.connect().await {
            Ok(broker) => broker,
            Err(error) => {
                self.control.board.report(Problem::UpstreamUnreachable {
                    peer: self.peer,
                    upstream: self.upstream,
                    reason: error.to_string(),
                });
                return;
            }
        };
        send_small_frames_at_once(&client);
        send_small_frames_at_once(&broker);
        let (from_client, to_client) = client.into_split();
        let (from_broker, to_broker) = broker.into_split();
        let (queue, queued) = mpsc::channel(requests::QUEUE_FRAMES_MAX);
        let shared = Relay::default();

        let upward = async {
            tokio::try_join!(
                async {
                    requests::take(from_client, queue, self, &shared).await;
                    Ok(())
                },
                requests::forward(queued, to_broker, self, &shared),
            )
        };
        let mut downward =
            std::pin::pin!(replies::give_back(from_broker, to_client, self, &shared));
        let forwarded = tokio::select! {
            ended = &mut downward => {
                if ended == replies::Ended::ByBroker {
                    self.report_lost_requests(shared.waiting());
                }
                return;
            }
            forwarded = upward => forwarded,
        };
        // Nothing more goes to the broker; what it has said until now still goes to the client.
        // Bounded: a broker that does not close would leave the connection here for ever.
        drop(tokio::time::timeout(DRAIN_TIMEOUT, downward).await);
        if forwarded.is_err() {
            self.report_lost_requests(shared.waiting());
        }
    }

    /// Waits for the end of a stall. After a cut it waits for good: the connection is about to be
    /// dropped, and what it held back must not slip out, even if the cut is over by now.
    pub(super) async fn wait_until_flowing(&self, state: &mut watch::Receiver<State>) {
        // An error would mean that the control is gone; this connection holds it.
        let _ = state
            .wait_for(|state| state.cuts == self.cuts && !state.faults.stalled)
            .await;
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(self.upstream)).await {
            Ok(connected) => connected,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    fn report_lost_requests(&self, requests: usize) {
        if requests > 0 {
            self.control.board.report(Problem::RequestsLost {
                peer: self.peer,
                upstream: self.upstream,
                requests,
            });
        }
    }
}

/// What one direction of a connection tells the other.
#[derive(Default)]
pub(super) struct Relay {
    /// The client sent what cannot be followed: its socket is closed now, while what it sent
    /// before goes on to the broker.
    pub(super) client_refused: CancellationToken,
    traffic: Mutex<Traffic>,
}

#[derive(Default)]
pub(super) struct Traffic {
    pub(super) in_flight: InFlight,
    /// Requests that arrived and are not forwarded yet.
    pub(super) waiting: usize,
}

impl Relay {
    /// Whole whenever the lock is free, so a panic elsewhere does not spoil it.
    pub(super) fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> usize {
        self.traffic().waiting
    }
}

/// The proxy's own buffering must not add to the delays that are asked for. A socket that
/// refuses the option still carries the bytes.
fn send_small_frames_at_once(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("cannot set TCP_NODELAY: {error}");
    }
}

/// Counts a connection as open for as long as it lives, however it ends.
struct Open<'a>(&'a Control);

impl<'a> Open<'a> {
    fn count(control: &'a Control) -> Self {
        control.board.count(|stats| {
            stats.connections += 1;
            stats.open += 1;
        });
        Self(control)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.board.count(|stats| stats.open -= 1);
    }
}
