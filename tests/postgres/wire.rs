//! The line between a client and the server: counted, and cut at a word.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use tokio_postgres::Config;

/// Forwards connections to a server. Its threads end with the connections.
pub(crate) struct Wire {
    addr: SocketAddr,
    shared: Arc<Shared>,
}

/// When a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// What the client said never arrives.
    Request,
    /// The server has done it, and its answer never arrives.
    Answer,
}

#[derive(Default)]
struct Shared {
    round_trips: AtomicU64,
    trap: Mutex<Option<(Cut, &'static str)>>,
    sprung: AtomicU64,
}

/// Both ends of one connection, and who spoke last.
struct Line {
    client: TcpStream,
    server: TcpStream,
    answered: AtomicBool,
    swallows: AtomicBool,
}

impl Wire {
    /// Listens on a free port, before the server that `config` names.
    pub(crate) fn before(config: &Config) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let (noting, upstream) = (Arc::clone(&shared), config.get_ports()[0]);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A server that is down refuses; so does this line to it.
                if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, upstream)) {
                    forward(client, server, &noting);
                }
            }
        });
        Self { addr, shared }
    }

    /// The same database by this line.
    pub(crate) fn config(&self, direct: &Config) -> Config {
        let mut config = Config::new();
        config
            .host("127.0.0.1")
            .port(self.addr.port())
            .user(direct.get_user().unwrap())
            .password(direct.get_password().unwrap())
            .dbname(direct.get_dbname().unwrap());
        config
    }

    /// Cuts the next connection whose client says this word.
    pub(crate) fn cut_at(&self, word: &'static str, cut: Cut) {
        *self.shared.trap.lock().unwrap() = Some((cut, word));
    }

    /// How many connections were cut.
    pub(crate) fn cuts(&self) -> u64 {
        self.shared.sprung.load(Ordering::SeqCst)
    }

    /// How often a client spoke and had an answer before it spoke again, on all connections.
    pub(crate) fn round_trips(&self) -> u64 {
        self.shared.round_trips.load(Ordering::SeqCst)
    }
}

fn forward(client: TcpStream, server: TcpStream, shared: &Arc<Shared>) {
    for end in [&client, &server] {
        end.set_nodelay(true).unwrap();
    }
    let line = Arc::new(Line {
        client,
        server,
        answered: AtomicBool::new(true),
        swallows: AtomicBool::new(false),
    });
    let (asking, shared) = (Arc::clone(&line), Arc::clone(shared));
    thread::spawn(move || {
        pump(&asking.client, &asking.server, |said| {
            asking.note_question(said, &shared)
        });
        asking.close();
    });
    thread::spawn(move || {
        pump(&line.server, &line.client, |_| {
            line.answered.store(true, Ordering::SeqCst);
            !line.swallows.load(Ordering::SeqCst)
        });
        line.close();
    });
}

/// Until either end is closed, or `passes` says no.
fn pump(mut from: &TcpStream, mut to: &TcpStream, passes: impl Fn(&[u8]) -> bool) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let said = &buffer[..length];
        if !passes(said) || to.write_all(said).is_err() {
            return;
        }
    }
}

impl Line {
    fn note_question(&self, said: &[u8], shared: &Shared) -> bool {
        if self.answered.swap(false, Ordering::SeqCst) {
            shared.round_trips.fetch_add(1, Ordering::SeqCst);
        }
        let mut trap = shared.trap.lock().unwrap();
        let Some((cut, word)) = *trap else {
            return true;
        };
        if !said.windows(word.len()).any(|part| part == word.as_bytes()) {
            return true;
        }
        *trap = None;
        shared.sprung.fetch_add(1, Ordering::SeqCst);
        // Before the question is passed on, so that no answer to it can slip by.
        self.swallows.store(cut == Cut::Answer, Ordering::SeqCst);
        cut == Cut::Answer
    }

    fn close(&self) {
        // The other end may be closed already.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

mod tests {
    use super::{Cut, Wire};
    use crate::postgres::connect;
    use crate::shared;

    #[tokio::test]
    async fn a_line_is_cut_before_or_after_what_the_server_does() {
        let Some(server) = shared::server() else {
            return;
        };
        let direct = server.database().await;
        let operator = connect(&direct).await;
        operator
            .batch_execute("CREATE TABLE done (number INT)")
            .await
            .unwrap();
        for (number, cut, kept) in [(1, Cut::Request, 0), (2, Cut::Answer, 1)] {
            let wire = Wire::before(&direct);
            let client = connect(&wire.config(&direct)).await;
            let before = wire.round_trips();
            let insert = format!("BEGIN; INSERT INTO done VALUES ({number})");
            client.batch_execute(&insert).await.unwrap();
            assert_eq!(wire.round_trips() - before, 1);
            wire.cut_at("COMMIT", cut);
            assert!(client.batch_execute("COMMIT").await.is_err());
            assert_eq!(wire.cuts(), 1);
            let rows = operator.query("SELECT number FROM done", &[]).await;
            assert_eq!(rows.unwrap().len(), kept, "{cut:?}");
        }
    }
}
