//! Takes the reports of all members, and keeps their order.

use std::collections::HashMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::log::{History, Positions, Run};
use super::message::{LINE_BYTES_MAX, Message, NOTED};

/// Members at once; above it a connection is closed as soon as it is made.
const CONNECTIONS_MAX: usize = 128;
/// How long the reports of a process that has ended may take to arrive.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);

/// Listens on a port of 127.0.0.1 and keeps what members report. Dropping it closes their
/// connections.
///
/// The history grows with every report, so a collector is for a test and not for a day.
#[derive(Debug)]
pub struct Collector {
    addr: SocketAddr,
    board: Arc<Board>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Board {
    inner: Mutex<Inner>,
    /// A connection has ended.
    ended: Condvar,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct Inner {
    history: History,
    /// By a number of their own: what is cut has no address any more.
    open: HashMap<u64, Connection>,
    admitted: u64,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    /// Once it has said who it is.
    run: Option<Run>,
}

impl Collector {
    /// Starts listening, on a free port.
    ///
    /// # Errors
    /// The system gives no port or no thread.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let addr = listener.local_addr()?;
        let board = Arc::new(Board::default());
        let shared = Arc::clone(&board);
        let thread = thread::Builder::new()
            .name("collector".to_owned())
            .spawn(move || accept(&listener, &shared))?;
        Ok(Self {
            addr,
            board,
            thread: Some(thread),
        })
    }

    /// Where members report.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// All that was reported so far.
    #[must_use]
    pub fn history(&self) -> History {
        self.board.lock().history.clone()
    }

    /// How many effects have happened, by all members.
    #[must_use]
    pub fn effects(&self) -> usize {
        self.board.lock().history.effects()
    }

    /// How many effects have happened in the lives of one member.
    #[must_use]
    pub fn effects_of(&self, member: &str) -> usize {
        self.board.lock().history.effects_of(member)
    }

    /// Whether a process has begun to report.
    #[must_use]
    pub fn has_started(&self, process: u32) -> bool {
        self.board.lock().history.run_of(process).is_some()
    }

    /// A process has ended without order, and its parent has seen it end. Waits until all of its
    /// reports are in the history; one that never reported is no matter. `positions` is what the
    /// group had committed at some moment before.
    ///
    /// # Errors
    /// Its connection is still open after 30 seconds: a child of its own holds it.
    pub fn crashed(&self, process: u32, positions: Positions) -> io::Result<()> {
        let inner = self.board.lock();
        let Some(run) = inner.history.run_of(process) else {
            return Ok(());
        };
        let is_open = |inner: &mut Inner| inner.open.values().any(|of| of.run == Some(run));
        let (mut inner, waited) = self
            .board
            .ended
            .wait_timeout_while(inner, DRAIN_LIMIT, is_open)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            let message = format!("process {process} has ended, and its connection is still open");
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        inner.history.crashed(run, positions);
        Ok(())
    }

    /// From now on the group may take a living process for dead; see [`History::interrupted`].
    pub fn interrupted(&self, process: u32, positions: Positions) {
        let mut inner = self.board.lock();
        if let Some(run) = inner.history.run_of(process) {
            inner.history.interrupted(run, positions);
        }
    }

    /// The process is a member in order again.
    pub fn recovered(&self, process: u32) {
        let mut inner = self.board.lock();
        if let Some(run) = inner.history.run_of(process) {
            inner.history.recovered(run);
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.board.stop.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection.
        drop(TcpStream::connect(self.addr));
        for connection in self.board.lock().open.values() {
            // It may be closed already.
            let _ = connection.stream.shutdown(std::net::Shutdown::Both);
        }
        if let Some(thread) = self.thread.take() {
            // A panic of that thread's was reported where it happened.
            let _ = thread.join();
        }
    }
}

impl Board {
    /// The history is whole whenever the lock is free, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self, id: u64) {
        self.lock().open.remove(&id);
        self.ended.notify_all();
    }
}

fn accept(listener: &TcpListener, board: &Arc<Board>) {
    for stream in listener.incoming() {
        if board.stop.load(Ordering::SeqCst) {
            return;
        }
        let admitted = stream.and_then(|stream| admit(stream, board));
        if let Err(error) = admitted {
            tracing::warn!("a connection to the collector failed: {error}");
        }
    }
}

fn admit(stream: TcpStream, board: &Arc<Board>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut inner = board.lock();
    if inner.open.len() == CONNECTIONS_MAX {
        let message = format!("there are {CONNECTIONS_MAX} connections already");
        return Err(io::Error::other(message));
    }
    inner.admitted += 1;
    let id = inner.admitted;
    let connection = Connection {
        stream: stream.try_clone()?,
        run: None,
    };
    inner.open.insert(id, connection);
    drop(inner);
    let shared = Arc::clone(board);
    let spawned = thread::Builder::new()
        .name("collector-member".to_owned())
        .spawn(move || {
            // A killed process closes its connection somehow: that is no fault.
            if let Err(error) = serve(&stream, id, &shared) {
                tracing::debug!("a member left the collector: {error}");
            }
            shared.leave(id);
        });
    spawned.map(drop).inspect_err(|_| board.leave(id))
}

/// Reads one member's lines until it leaves, and answers each once it is in the history.
fn serve(stream: &TcpStream, id: u64, board: &Board) -> io::Result<()> {
    let mut lines = BufReader::new(stream);
    let mut answers = stream;
    let mut run = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        lines
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)?;
        // What a kill has cut off was not reported.
        if line.last() != Some(&b'\n') {
            return Ok(());
        }
        match note(&line, &mut run, id, &mut board.lock()) {
            Ok(()) => writeln!(answers, "{NOTED}")?,
            Err(reason) => {
                writeln!(answers, "{reason}")?;
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
        }
    }
}

/// Puts one line into the history, or says why not.
fn note(line: &[u8], run: &mut Option<Run>, id: u64, inner: &mut Inner) -> Result<(), String> {
    let message = serde_json::from_slice(line).map_err(|error| format!("not a report: {error}"))?;
    let history = &mut inner.history;
    match (message, *run) {
        (Message::Started { member, process }, None) => {
            *run = Some(history.start(&member, process));
            if let Some(connection) = inner.open.get_mut(&id) {
                connection.run = *run;
            }
        }
        (Message::Began { number, effect }, Some(run)) => history.began(run, number, effect),
        (Message::Applied { number }, Some(run)) => history.applied(run, number),
        (Message::Failed { number }, Some(run)) => history.failed(run, number),
        (Message::Started { .. }, Some(_)) => return Err("started twice".to_owned()),
        (_, None) => return Err("a report before the start".to_owned()),
    }
    Ok(())
}
