//! A scripted broker, a client that speaks frames, and what both are joined by.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use idempotent_consumer::testkit::{ApiKey, FaultProxy, Faults};

/// What must happen happens long before this; only a failing test waits it out.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// A delay that no test outlives.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(3_600);

pub(crate) fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

pub(crate) fn proxy_to(broker: &Broker, faults: Faults) -> FaultProxy {
    FaultProxy::start(loopback(), broker.addr, faults).unwrap()
}

/// A frame on the wire: a request header, then `body_bytes` bytes that depend on the id.
pub(crate) fn request(api_key: ApiKey, correlation_id: i32, body_bytes: usize) -> Vec<u8> {
    let mut payload = Vec::new();
    payload.extend(api_key.0.to_be_bytes());
    payload.extend(7_i16.to_be_bytes());
    payload.extend(correlation_id.to_be_bytes());
    let seed = u8::try_from(correlation_id.rem_euclid(251)).unwrap();
    payload.extend((0..body_bytes).map(|i| seed.wrapping_add(u8::try_from(i % 256).unwrap())));
    framed(&payload)
}

/// A request whose payload has exactly this many bytes.
pub(crate) fn request_of_size(correlation_id: i32, payload_bytes: usize) -> Vec<u8> {
    request(ApiKey::PRODUCE, correlation_id, payload_bytes - 8)
}

/// What [`Broker::answering`] says to a request: its correlation id, then all of it.
pub(crate) fn reply_to(request: &[u8]) -> Vec<u8> {
    let mut payload = request[8..12].to_vec();
    payload.extend(request);
    framed(&payload)
}

pub(crate) fn framed(payload: &[u8]) -> Vec<u8> {
    let mut frame = i32::try_from(payload.len()).unwrap().to_be_bytes().to_vec();
    frame.extend(payload);
    frame
}

fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    stream.read_exact(&mut frame)?;
    let size = u32::from_be_bytes(frame[..4].try_into().unwrap());
    frame.resize(4 + usize::try_from(size).unwrap(), 0);
    stream.read_exact(&mut frame[4..])?;
    Ok(frame)
}

pub(crate) struct Client {
    stream: TcpStream,
}

impl Client {
    pub(crate) fn of(proxy: &FaultProxy) -> Self {
        Self::at(proxy.local_addr())
    }

    pub(crate) fn at(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn reply(&mut self) -> Vec<u8> {
        read_frame(&mut self.stream).unwrap()
    }

    /// Sends a request and checks that its own reply comes back, unchanged.
    pub(crate) fn exchange(&mut self, request: &[u8]) {
        self.send(request);
        assert!(self.reply() == reply_to(request), "not the request's reply");
    }

    /// Waits until a reply is there, and leaves it unread.
    pub(crate) fn wait_for_unread_reply(&self) {
        assert_eq!(self.stream.peek(&mut [0]).unwrap(), 1);
    }

    /// Whether a reply is there now.
    pub(crate) fn has_reply(&self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        peeked.is_ok()
    }

    /// Tells the other side that nothing more is coming, and still reads.
    pub(crate) fn finish_sending(&mut self) {
        self.stream.shutdown(std::net::Shutdown::Write).unwrap();
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.stream.local_addr().unwrap()
    }

    /// Waits for the other side to close, by an end or a reset, without another byte.
    pub(crate) fn assert_closed(&mut self) {
        match self.stream.read(&mut [0]) {
            Ok(0) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            other => panic!("the connection was not closed: {other:?}"),
        }
    }
}

/// Something that reached the broker.
#[derive(Clone)]
pub(crate) struct Arrival {
    /// Connections are numbered in the order in which they were made.
    pub(crate) connection: usize,
    pub(crate) frame: Vec<u8>,
    pub(crate) at: Instant,
}

#[derive(Default)]
struct Log {
    arrivals: Mutex<Vec<Arrival>>,
    changed: Condvar,
}

/// Records every frame and answers as scripted. Its threads end with the connections that the
/// proxy closes, the accepting one with the test's process.
pub(crate) struct Broker {
    pub(crate) addr: SocketAddr,
    log: Arc<Log>,
}

impl Broker {
    pub(crate) fn answering() -> Self {
        Self::scripted(|request| Some(reply_to(request)))
    }

    pub(crate) fn silent() -> Self {
        Self::scripted(|_| Some(Vec::new()))
    }

    /// Sends what the script returns for each frame; `None` closes the connection.
    pub(crate) fn scripted(
        script: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(loopback()).unwrap();
        let addr = listener.local_addr().unwrap();
        let log = Arc::new(Log::default());
        let script = Arc::new(script);
        let accepting = Arc::clone(&log);
        thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let (log, script) = (Arc::clone(&accepting), Arc::clone(&script));
                thread::spawn(move || log.follow(connection, stream.unwrap(), &*script));
            }
        });
        Self { addr, log }
    }

    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.log.arrivals.lock().unwrap().clone()
    }

    /// Waits until this many frames are there and returns them all.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Arrival> {
        let (arrivals, waited) = self
            .log
            .changed
            .wait_timeout_while(self.log.arrivals.lock().unwrap(), DEADLINE, |arrivals| {
                arrivals.len() < count
            })
            .unwrap();
        assert!(
            !waited.timed_out(),
            "{} of {count} frames reached the broker",
            arrivals.len()
        );
        arrivals.clone()
    }
}

impl Log {
    fn follow(
        &self,
        connection: usize,
        mut stream: TcpStream,
        script: &dyn Fn(&[u8]) -> Option<Vec<u8>>,
    ) {
        stream.set_nodelay(true).unwrap();
        while let Ok(frame) = read_frame(&mut stream) {
            let answer = script(&frame);
            self.arrivals.lock().unwrap().push(Arrival {
                connection,
                frame,
                at: Instant::now(),
            });
            self.changed.notify_all();
            match answer {
                Some(bytes) if stream.write_all(&bytes).is_ok() => {}
                _ => return,
            }
        }
    }
}
