//! A TCP proxy in front of one Kafka broker that makes the network misbehave on request.

mod connection;
mod control;
mod error;
mod faults;
mod frame;
mod in_flight;
mod listener;
mod replies;
mod requests;
mod stats;

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use self::error::{Problem, ProxyError, Sender};
pub use self::faults::{DELAY_MAX, DelayLarge, Faults};
pub use self::frame::{ApiKey, FRAME_BYTES_MAX, Frame, FrameDecoder, FrameError, RequestHeader};
pub use self::stats::Stats;

use self::control::Control;
use self::faults::Loss;

/// A loopback proxy that delays, loses and cuts what passes between Kafka clients and a broker.
///
/// Clients reach the broker through it when the broker advertises the proxy's address as its
/// own. It reads Kafka's framing, not what is in the frames, and forwards frames unchanged; a
/// request or reply of more than [`FRAME_BYTES_MAX`] bytes or with a negative size, and so any
/// TLS connection, is closed and reported as a [`Problem`].
///
/// - Requests of one connection stay in order: one that waits makes those behind it wait.
///   Connections do not wait for each other.
/// - A request that arrived whole reaches the broker even if its client has closed meanwhile,
///   late, as over a slow network: a client that timed out and sends again leaves two copies.
///   Lost are only those that are held back when the connection is cut, when the broker closes
///   it, or when the proxy is dropped.
/// - At most 128 connections; at most 1,024 requests and one frame's worth of bytes wait per
///   connection, and above that its client is not read.
///
/// It owns a thread, so it works in synchronous tests and in any runtime. Dropping it closes
/// everything and waits for that thread. A change of faults holds for every frame that arrives
/// after the call; a request already held back keeps its time.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use idempotent_consumer::testkit::{ApiKey, FaultProxy, Faults};
///
/// let broker = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
/// let proxy = FaultProxy::start("127.0.0.1:0".parse()?, broker, Faults::default())?;
/// proxy.change(|faults| faults.delay_all = Duration::from_millis(50));
/// proxy.disconnect_before_replies(ApiKey::OFFSET_COMMIT, 1);
/// assert_eq!(proxy.stats().connections, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FaultProxy {
    local_addr: SocketAddr,
    upstream: SocketAddr,
    control: Arc<Control>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl FaultProxy {
    /// Listens on `listen` (port 0: any free port, see [`FaultProxy::local_addr`]) and forwards
    /// every connection to `upstream`, which is first needed when a client connects. What the
    /// proxy logs goes to the caller's `tracing` subscriber.
    ///
    /// # Errors
    /// `listen` is not a loopback address, is `upstream` itself, or is taken; or the system
    /// gives no thread.
    pub fn start(
        listen: SocketAddr,
        upstream: SocketAddr,
        faults: Faults,
    ) -> Result<Self, ProxyError> {
        if !listen.ip().to_canonical().is_loopback() {
            return Err(ProxyError::NotLoopback { listen });
        }
        if listen == upstream {
            return Err(ProxyError::UpstreamIsSelf { listen });
        }
        let (listener, local_addr) =
            bind(listen).map_err(|source| ProxyError::Listen { listen, source })?;
        let control = Arc::new(Control::new(faults));
        let stop = CancellationToken::new();
        let thread = spawn(listener, upstream, Arc::clone(&control), stop.clone())
            .map_err(|source| ProxyError::Thread { source })?;
        Ok(Self {
            local_addr,
            upstream,
            control,
            stop,
            thread: Some(thread),
        })
    }

    /// Where clients connect.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Where their requests go.
    #[must_use]
    pub fn upstream(&self) -> SocketAddr {
        self.upstream
    }

    /// The faults in force.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.control.faults()
    }

    /// Puts these faults in force in place of those there are. Replies that are still to be lost
    /// stay so.
    pub fn set(&self, faults: Faults) {
        self.change(|current| *current = faults);
    }

    /// Changes some of the faults and leaves the others. If they include a cut afterwards,
    /// connections are closed as by [`FaultProxy::cut`].
    pub fn change(&self, change: impl FnOnce(&mut Faults)) {
        self.control.change(change);
    }

    /// Ends every fault, replies that are still to be lost included.
    pub fn heal(&self) {
        self.control.lose_no_replies();
        self.set(Faults::default());
    }

    /// Delays requests of more than a number of bytes; `None` ends it.
    pub fn delay_large(&self, large: impl Into<Option<DelayLarge>>) {
        let large = large.into();
        self.change(|faults| faults.delay_large = large);
    }

    /// Closes all connections, with what they hold back, and every new one until
    /// [`FaultProxy::restore`]. Connections close shortly after the call returns;
    /// [`Stats::open`] tells when.
    pub fn cut(&self) {
        self.change(|faults| faults.cut = true);
    }

    /// Ends a cut. Clients connect anew.
    pub fn restore(&self) {
        self.change(|faults| faults.cut = false);
    }

    /// Stops forwarding in both directions while connections stay open.
    pub fn stall(&self) {
        self.change(|faults| faults.stalled = true);
    }

    /// Ends a stall: what was held back passes, in order.
    pub fn resume(&self) {
        self.change(|faults| faults.stalled = false);
    }

    /// Loses the next `count` replies, to requests of one kind or (`None`) of any: the request
    /// reaches the broker, the reply never reaches the client, the connection stays open. Calls
    /// add up.
    ///
    /// A client notices at its request timeout. Apache Kafka's Java client takes the next reply
    /// on the same connection for a breach of the protocol, since a network loses no reply out
    /// of the middle; [`FaultProxy::disconnect_before_replies`] is what a network does.
    pub fn drop_replies(&self, api_key: impl Into<Option<ApiKey>>, count: u32) {
        self.control
            .lose_replies(api_key.into(), Loss::Silence, count);
    }

    /// Loses the next `count` replies as [`FaultProxy::drop_replies`] does, and closes the
    /// connection in place of each, with what it holds back: the client knows at once that it
    /// does not know.
    pub fn disconnect_before_replies(&self, api_key: impl Into<Option<ApiKey>>, count: u32) {
        self.control
            .lose_replies(api_key.into(), Loss::Disconnect, count);
    }

    /// The numbers so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.control.board.stats()
    }

    /// Blocks until the numbers are as wanted, and returns them.
    ///
    /// # Errors
    /// They are not after `timeout`; the error holds them as they are then.
    pub fn wait_for(
        &self,
        timeout: Duration,
        wanted: impl FnMut(&Stats) -> bool,
    ) -> Result<Stats, Box<Stats>> {
        self.control.board.wait_for(timeout, wanted)
    }

    /// What went wrong since the last call, oldest first; the latest 64 are kept.
    #[must_use]
    pub fn take_problems(&self) -> Vec<Problem> {
        self.control.board.take_problems()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!(
                "the proxy on {} ended by a fault of its own",
                self.local_addr
            );
        }
    }
}

fn bind(listen: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(listen)?;
    listener.set_nonblocking(true)?;
    let local_addr = listener.local_addr()?;
    Ok((listener, local_addr))
}

/// Runs the proxy on a thread of its own. The runtime is made and dropped on that thread, since
/// dropping one inside another runtime panics.
fn spawn(
    listener: TcpListener,
    upstream: SocketAddr,
    control: Arc<Control>,
    stop: CancellationToken,
) -> std::io::Result<JoinHandle<()>> {
    let logs = tracing::dispatcher::get_default(Clone::clone);
    let (ready, started) = mpsc::sync_channel(1);
    let body = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        {
            Ok(runtime) => runtime,
            Err(error) => return drop(ready.send(Err(error))),
        };
        runtime.block_on(async {
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => {
                    drop(ready.send(Ok(())));
                    listener::run(listener, upstream, control, stop).await;
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        });
    };
    let thread = thread::Builder::new()
        .name("fault-proxy".to_owned())
        .spawn(move || tracing::dispatcher::with_default(&logs, body))?;
    match started.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(std::io::Error::other("the thread ended at its start")),
    }
}
