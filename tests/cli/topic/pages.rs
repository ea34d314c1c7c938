//! What can be asked while it waits for its brokers, by whoever asks, and how it ends meanwhile.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{flags, topic};
use crate::support::{DEADLINE, Lab, eventually, finish, read, run};

/// It tries its brokers for half a minute.
struct Waiting {
    lab: Lab,
    child: Option<Child>,
}

impl Waiting {
    fn start(listen: &str) -> Self {
        let lab = Lab::new();
        let log = std::fs::File::create(lab.path("log")).unwrap();
        let mut command = topic(&lab);
        command.args(flags(&lab)).args(["--listen", listen]);
        let child = command.stdin(Stdio::null()).stderr(log).spawn().unwrap();
        Self {
            lab,
            child: Some(child),
        }
    }

    fn address(&self) -> SocketAddr {
        let mut found = None;
        eventually("the address", || {
            let log = String::from_utf8(read(self.lab.path("log"))).unwrap();
            found = log.split_once("address=").and_then(|(_, rest)| {
                let (word, _) = rest.split_once('\n')?;
                word.parse().ok()
            });
            found.is_some()
        });
        found.unwrap()
    }

    /// Ends it by a signal; gives the code.
    fn end(mut self, signal: &str) -> Option<i32> {
        let child = self.child.take().unwrap();
        let id = child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(sent.unwrap().success());
        finish(child).code
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
}

fn ask(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = connect(address);
    // It may answer and close before it was sent everything.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn it_lives_before_it_is_ready_and_either_signal_ends_it() {
    for signal in ["TERM", "INT"] {
        let waiting = Waiting::start("0");
        let address = waiting.address();
        assert!(address.ip().is_loopback());
        let alive = ask(address, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(alive.starts_with("HTTP/1.1 200 OK\r\n"), "{alive}");
        let ready = ask(address, b"GET /readyz HTTP/1.1\r\n\r\n");
        assert!(ready.starts_with("HTTP/1.1 503 "), "{ready}");
        assert!(ready.ends_with("no partition is assigned\n"), "{ready}");
        let figures = ask(address, b"GET /metrics HTTP/1.0\r\n\r\n");
        assert!(figures.contains("dedup_topic_ready 0\n"), "{figures}");
        assert_eq!(waiting.end(signal), Some(0));
    }
}

#[test]
fn whatever_is_sent_gets_a_short_answer() {
    let waiting = Waiting::start("127.0.0.1:0");
    let address = waiting.address();
    let long = [
        b"GET /healthz HTTP/1.1\r\nX: ".as_slice(),
        &vec![b'x'; 20_000],
    ]
    .concat();
    for (request, status) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
        (b"GET /healthz?x=1 HTTP/1.1\r\n\r\n", "200"),
        (b"GET /healthz/ HTTP/1.1\r\n\r\n", "404"),
        (
            b"POST /healthz HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
            "405",
        ),
        (b"get /healthz HTTP/1.1\r\n\r\n", "405"),
        (b"GET /healthz HTTP/2\r\n\r\n", "400"),
        (b"GET /healthz\r\n\r\n", "400"),
        (b"\x16\x03\x01\r\n\r\n", "400"),
        (b"\r\n\r\n", "400"),
        (&long, "431"),
    ] {
        let answer = ask(address, request);
        // A client that is still sending may lose the answer to the reset.
        let lost = status == "431" && answer.is_empty();
        let line = format!("HTTP/1.1 {status} ");
        assert!(lost || answer.starts_with(&line), "{request:?}: {answer}");
    }
    let answer = ask(address, b"HEAD /healthz HTTP/1.1\r\n\r\n");
    assert!(answer.contains("Content-Length: 6\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    assert_eq!(waiting.end("TERM"), Some(0));
}

#[test]
fn those_who_say_nothing_are_put_off_and_keep_nobody_out() {
    let waiting = Waiting::start("0");
    let address = waiting.address();
    // Were each waited for, sixteen at a time, there would be no answer for a quarter of a minute.
    let mut silent: Vec<_> = (0..250).map(|_| connect(address)).collect();
    let began = Instant::now();
    let answer = ask(address, b"GET /healthz HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(began.elapsed() < Duration::from_secs(10));
    let mut byte = [0];
    for silent in [0, 249].map(|at| silent.swap_remove(at.min(silent.len() - 1))) {
        let began = Instant::now();
        let read = (&silent).read(&mut byte);
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
        // Neither the newest is held for as long as a request and its answer may take together.
        assert!(began.elapsed() < Duration::from_secs(4));
    }
    assert_eq!(waiting.end("TERM"), Some(0));
}

#[test]
fn an_address_that_is_taken_is_refused_with_its_name() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let lab = Lab::new();
    let mut command = topic(&lab);
    command.args(flags(&lab)).args(["--listen", &address]);
    let finished = run(&mut command, "");
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains(&address), "{finished:?}");
}
