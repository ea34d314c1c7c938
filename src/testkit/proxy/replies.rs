//! From the broker to the client: whole replies, except those that are to be lost.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, Relay};
use super::error::{Problem, Sender};
use super::faults::Loss;
use super::frame::{Frame, FrameDecoder};
use super::requests::READ_BYTES;

/// Why no more replies come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It closed, broke, or sent what is not a reply.
    ByBroker,
    /// A reply was to be lost together with its connection.
    OnRequest,
}

/// Gives replies to the client until the broker closes. It reads on when the client is gone:
/// unread replies would make the broker's system reset the connection, and with it requests
/// that the broker has not read yet.
pub(super) async fn give_back(
    mut broker: OwnedReadHalf,
    client: OwnedWriteHalf,
    connection: &Connection,
    relay: &Relay,
) -> Ended {
    let mut client = Client {
        socket: Some(client),
        refused: &relay.client_refused,
    };
    let mut state = connection.control.subscribe();
    let mut decoder = FrameDecoder::default();
    let mut chunk = vec![0; READ_BYTES];
    loop {
        let read_bytes = match client.meanwhile(broker.read(&mut chunk)).await {
            Ok(0) | Err(_) => break,
            Ok(read_bytes) => read_bytes,
        };
        decoder.extend(chunk.get(..read_bytes).unwrap_or_default());
        loop {
            let frame = match decoder.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    connection.control.board.report(Problem::Malformed {
                        peer: connection.peer,
                        sender: Sender::Upstream,
                        error,
                    });
                    return Ended::ByBroker;
                }
            };
            connection.control.board.count(|stats| stats.replies += 1);
            connection.wait_until_flowing(&mut state).await;
            match loss(&frame, connection, relay) {
                None => client.send(&frame).await,
                Some(Loss::Silence) => {}
                Some(Loss::Disconnect) => return Ended::OnRequest,
            }
        }
    }
    if decoder.unfinished_bytes() > 0 {
        connection.control.board.report(Problem::HalfFrame {
            peer: connection.peer,
            sender: Sender::Upstream,
            bytes: decoder.unfinished_bytes(),
        });
    }
    Ended::ByBroker
}

fn loss(reply: &Frame, connection: &Connection, relay: &Relay) -> Option<Loss> {
    let answered = reply
        .reply_correlation_id()
        .and_then(|correlation_id| relay.traffic().in_flight.answered(correlation_id));
    connection.control.loss_of_reply(answered)
}

/// The client's end, for as long as it is there.
struct Client<'a> {
    socket: Option<OwnedWriteHalf>,
    refused: &'a CancellationToken,
}

impl Client<'_> {
    /// Awaits `work`, closing the client's socket in the middle of it if the client is refused.
    async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        if self.socket.is_some() {
            tokio::select! {
                done = &mut work => return done,
                () = self.refused.cancelled() => self.socket = None,
            }
        }
        work.await
    }

    async fn send(&mut self, reply: &Frame) {
        let Some(mut socket) = self.socket.take() else {
            return;
        };
        tokio::select! {
            // A client that is gone needs no reply; its requests still go their way.
            sent = socket.write_all(reply.as_bytes()) => self.socket = sent.is_ok().then_some(socket),
            () = self.refused.cancelled() => {}
        }
    }
}
