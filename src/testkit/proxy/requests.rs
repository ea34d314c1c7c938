//! From the client to the broker: taken at once, forwarded when their time has come.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;

use super::connection::{Connection, Relay};
use super::error::{Problem, Sender};
use super::frame::{FRAME_BYTES_MAX, Frame, FrameDecoder};

/// Requests of one connection that may wait at once. Together with [`QUEUE_BYTES_MAX`] it bounds
/// what is taken from a client ahead of the broker; above it the client is not read.
pub(super) const QUEUE_FRAMES_MAX: usize = 1_024;

/// Bytes of one connection's requests that may wait at once: the largest frame fits, whole.
const QUEUE_BYTES_MAX: usize = FRAME_BYTES_MAX + 4;

/// Bytes asked for in one read.
pub(super) const READ_BYTES: usize = 64 * 1024;

/// A request that waits for its time.
pub(super) struct Queued {
    frame: Frame,
    due: Instant,
    /// Given back when the request is forwarded or lost with its connection.
    _budget: OwnedSemaphorePermit,
}

/// Reads requests until the client closes, breaks the framing, or nobody forwards any more.
pub(super) async fn take(
    mut client: OwnedReadHalf,
    queue: mpsc::Sender<Queued>,
    connection: &Connection,
    relay: &Relay,
) {
    let budget = Arc::new(Semaphore::new(QUEUE_BYTES_MAX));
    let mut decoder = FrameDecoder::default();
    let mut chunk = vec![0; READ_BYTES];
    loop {
        let read_bytes = match client.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(read_bytes) => read_bytes,
        };
        decoder.extend(chunk.get(..read_bytes).unwrap_or_default());
        loop {
            let frame = match decoder.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    relay.client_refused.cancel();
                    return connection.control.board.report(Problem::Malformed {
                        peer: connection.peer,
                        sender: Sender::Client,
                        error,
                    });
                }
            };
            if !enqueue(frame, &queue, &budget, connection, relay).await {
                return;
            }
        }
    }
    if decoder.unfinished_bytes() > 0 {
        connection.control.board.report(Problem::HalfFrame {
            peer: connection.peer,
            sender: Sender::Client,
            bytes: decoder.unfinished_bytes(),
        });
    }
}

/// Gives a request its time and queues it; `false` when nobody forwards any more.
async fn enqueue(
    frame: Frame,
    queue: &mpsc::Sender<Queued>,
    budget: &Arc<Semaphore>,
    connection: &Connection,
    relay: &Relay,
) -> bool {
    // Taken before any waiting for room, so that a full queue does not add to a delay.
    let delay = connection.control.faults().delay_of(frame.size_bytes());
    let due = Instant::now() + delay;
    relay.traffic().waiting += 1;
    connection.control.board.count(|stats| {
        stats.count_request(&frame);
        stats.delayed += u64::from(!delay.is_zero());
    });
    // Never above the budget as a whole: a frame's size fits an i32.
    let bytes = u32::try_from(frame.as_bytes().len()).unwrap_or(u32::MAX);
    let Ok(permit) = Arc::clone(budget).acquire_many_owned(bytes).await else {
        return false;
    };
    let request = Queued {
        frame,
        due,
        _budget: permit,
    };
    queue.send(request).await.is_ok()
}

/// Writes each request to the broker when its time has come, in the order of arrival, until the
/// client is done and every request was written.
pub(super) async fn forward(
    mut queue: mpsc::Receiver<Queued>,
    mut broker: OwnedWriteHalf,
    connection: &Connection,
    relay: &Relay,
) -> io::Result<()> {
    let mut state = connection.control.subscribe();
    while let Some(request) = queue.recv().await {
        // The timer counts in milliseconds and rounds up, so it is asked for real delays only.
        if request.due > Instant::now() {
            tokio::time::sleep_until(request.due).await;
        }
        connection.wait_until_flowing(&mut state).await;
        if let Some(header) = request.frame.request_header() {
            // Before the write: the answer may be here before the write returns.
            relay.traffic().in_flight.sent(header);
        }
        broker.write_all(request.frame.as_bytes()).await?;
        relay.traffic().waiting -= 1;
        connection.control.board.count(|stats| stats.forwarded += 1);
    }
    // Only now does the broker learn that the client is gone.
    broker.shutdown().await
}
