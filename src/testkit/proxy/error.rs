//! Why a proxy does not start, and what goes wrong on its connections once it runs.

use std::io;
use std::net::SocketAddr;

use super::frame::FrameError;

/// Why a [`FaultProxy`](super::FaultProxy) did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The proxy is for tests and has no access control, so nobody else may reach it.
    #[error("cannot listen on {listen}: not a loopback address; use 127.0.0.1 or [::1]")]
    NotLoopback {
        /// The address asked for.
        listen: SocketAddr,
    },
    /// The proxy would connect to itself for ever.
    #[error("cannot forward {listen} to itself; the broker must listen on another port")]
    UpstreamIsSelf {
        /// The address asked for, twice.
        listen: SocketAddr,
    },
    /// The address could not be taken.
    #[error("cannot listen on {listen}; is something else listening there?")]
    Listen {
        /// The address asked for.
        listen: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The system gave no thread, or no event queue for it.
    #[error("cannot start the proxy's thread")]
    Thread {
        /// What the system said.
        source: io::Error,
    },
}

/// Which side of a connection sent something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The Kafka client.
    Client,
    /// The broker.
    Upstream,
}

impl std::fmt::Display for Sender {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Client => "client",
            Self::Upstream => "upstream",
        })
    }
}

/// Something that cost a connection and that nobody asked the proxy for. It is logged as a
/// warning, counted, and kept for [`FaultProxy::take_problems`](super::FaultProxy::take_problems).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Bytes that are not Kafka's framing, for example TLS. The sender's connection is closed;
    /// whole requests before those bytes are still forwarded.
    #[error("connection of {peer} closed: the {sender} sent {error}")]
    Malformed {
        /// The client's address.
        peer: SocketAddr,
        /// Who sent the bytes.
        sender: Sender,
        /// What is wrong with them.
        error: FrameError,
    },
    /// The stream ended inside a frame. What there was of that frame is not forwarded.
    #[error("connection of {peer}: the {sender} closed it {bytes} bytes into a frame")]
    HalfFrame {
        /// The client's address.
        peer: SocketAddr,
        /// Who closed it.
        sender: Sender,
        /// Bytes of the unfinished frame, its size included.
        bytes: usize,
    },
    /// The broker could not be reached. The client's connection is closed.
    #[error("connection of {peer} closed: upstream {upstream} cannot be reached: {reason}")]
    UpstreamUnreachable {
        /// The client's address.
        peer: SocketAddr,
        /// The broker's address.
        upstream: SocketAddr,
        /// What the system said.
        reason: String,
    },
    /// The broker closed or broke the connection while requests for it were still held back.
    #[error(
        "connection of {peer}: upstream {upstream} closed it, {requests} requests not forwarded"
    )]
    RequestsLost {
        /// The client's address.
        peer: SocketAddr,
        /// The broker's address.
        upstream: SocketAddr,
        /// How many requests were lost.
        requests: usize,
    },
    /// More connections than the proxy keeps. The new one is closed.
    #[error("connection of {peer} refused: {limit} connections are open already")]
    TooManyConnections {
        /// The client's address.
        peer: SocketAddr,
        /// The most that are open at once.
        limit: usize,
    },
}
