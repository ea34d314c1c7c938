//! `/healthz`, `/readyz` and `/metrics`: as little HTTP as they need, everything bounded.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{figures::Figures, health::Health};

/// For one beyond, the oldest is dropped: whoever holds connections open keeps no probe out.
const CONNECTIONS_MAX: usize = 16;
/// Longer than any probe's request.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// For a request, up to its blank line.
const HEAD_PATIENCE: Duration = Duration::from_secs(1);
/// For a request and its answer together.
const PATIENCE: Duration = Duration::from_secs(5);
/// Behind a failure to accept, which lasts as long as there are no descriptors.
const PAUSE: Duration = Duration::from_millis(100);

const TEXT: &str = "text/plain; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What is shown.
pub(super) struct Pages {
    pub(super) health: Arc<Health>,
    pub(super) figures: Arc<Figures>,
}

struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Answer {
    fn text(status: &'static str, body: impl Into<String>) -> Self {
        let (kind, body) = (TEXT, body.into() + "\n");
        Self { status, kind, body }
    }
}

/// Answers for ever; ends when it is dropped.
pub(super) async fn serve(listener: TcpListener, pages: Arc<Pages>) {
    let mut open: VecDeque<JoinHandle<()>> = VecDeque::with_capacity(CONNECTIONS_MAX);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                open.retain(|connection| !connection.is_finished());
                if open.len() >= CONNECTIONS_MAX {
                    if let Some(oldest) = open.pop_front() {
                        oldest.abort();
                    }
                }
                let pages = Arc::clone(&pages);
                open.push_back(tokio::spawn(async move {
                    // Whoever is slow or gone is told nothing.
                    let _ = timeout(PATIENCE, connection(stream, &pages)).await;
                }));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn connection(mut stream: TcpStream, pages: &Pages) -> std::io::Result<()> {
    let head = timeout(HEAD_PATIENCE, head(&mut stream)).await??;
    let (answer, with_body) = match head.as_deref() {
        None => (
            Answer::text("431 Request Header Fields Too Large", "too long"),
            true,
        ),
        Some(head) => pages.answer(head),
    };
    let Answer { status, kind, body } = answer;
    let length = body.len();
    let mut bytes = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: \
         no-store\r\nConnection: close\r\n\r\n"
    );
    if with_body {
        bytes.push_str(&body);
    }
    stream.write_all(bytes.as_bytes()).await?;
    stream.shutdown().await
}

/// All up to the blank line; `None` where it is too long.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while head.len() < HEAD_BYTES_MAX {
        let read = stream.read(&mut part).await?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&part[..read]);
        if head.windows(4).any(|four| four == b"\r\n\r\n") {
            return Ok(Some(head));
        }
    }
    Ok(None)
}

impl Pages {
    /// The answer, and whether its body is wanted.
    fn answer(&self, head: &[u8]) -> (Answer, bool) {
        let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.split(' ');
        let (method, path) = (words.next(), words.next());
        let version = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
        let (Some(method), Some(path), true) = (method, path, version) else {
            return (Answer::text("400 Bad Request", "not understood"), true);
        };
        if !["GET", "HEAD"].contains(&method) {
            return (Answer::text("405 Method Not Allowed", "GET only"), true);
        }
        let path = path.split('?').next().unwrap_or_default();
        (self.page(path), method == "GET")
    }

    fn page(&self, path: &str) -> Answer {
        match path {
            "/healthz" => match self.health.lifeless() {
                None => Answer::text("200 OK", "alive"),
                Some(why) => Answer::text("503 Service Unavailable", why),
            },
            "/readyz" => match self.health.unready() {
                None => Answer::text("200 OK", "ready"),
                Some(why) => Answer::text("503 Service Unavailable", why),
            },
            "/metrics" => Answer {
                status: "200 OK",
                kind: PROMETHEUS,
                body: self.figures.text(&self.health),
            },
            _ => Answer::text("404 Not Found", "there are /healthz, /readyz and /metrics"),
        }
    }
}
