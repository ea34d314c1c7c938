//! Kafka's framing: a big-endian `i32` size, then that many bytes. Pure: no socket, no clock.

/// The largest payload a [`FrameDecoder`] accepts, in bytes.
///
/// 1 MiB above the broker's own limit for requests (`socket.request.max.bytes`, 104,857,600 by
/// default), so that a request which is merely too large for the broker is refused by the broker.
pub const FRAME_BYTES_MAX: usize = 101 * 1024 * 1024;

/// Bytes of the size in front of every payload.
const PREFIX_BYTES: usize = 4;

/// A buffer larger than this is given back once its frames are taken.
const BUFFER_KEPT_BYTES: usize = 256 * 1024;

/// One request or reply, byte for byte as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    bytes: Vec<u8>,
}

impl Frame {
    /// The frame as on the wire: the size, then the payload.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of the payload: the number that the size in front of it says.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.payload().len()
    }

    /// What follows the size.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.bytes.get(PREFIX_BYTES..).unwrap_or_default()
    }

    /// The part of a request's header that is the same in all versions; `None` when the payload
    /// is too short to hold one.
    #[must_use]
    pub fn request_header(&self) -> Option<RequestHeader> {
        let [k0, k1, v0, v1, c0, c1, c2, c3] = *self.payload().first_chunk()?;
        Some(RequestHeader {
            api_key: ApiKey(i16::from_be_bytes([k0, k1])),
            api_version: i16::from_be_bytes([v0, v1]),
            correlation_id: i32::from_be_bytes([c0, c1, c2, c3]),
        })
    }

    /// The correlation id of a reply; `None` when the payload is too short to hold one.
    #[must_use]
    pub fn reply_correlation_id(&self) -> Option<i32> {
        self.payload()
            .first_chunk()
            .map(|bytes| i32::from_be_bytes(*bytes))
    }
}

/// The first eight bytes of every Kafka request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Which request it is.
    pub api_key: ApiKey,
    /// The version of that request.
    pub api_version: i16,
    /// The number that the reply repeats.
    pub correlation_id: i32,
}

/// The number by which Kafka's protocol names a kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiKey(pub i16);

impl ApiKey {
    /// Records for the log.
    pub const PRODUCE: Self = Self(0);
    /// Records from the log.
    pub const FETCH: Self = Self(1);
    /// Brokers, topics and leaders.
    pub const METADATA: Self = Self(3);
    /// A group's offsets, written.
    pub const OFFSET_COMMIT: Self = Self(8);
    /// A group's offsets, read.
    pub const OFFSET_FETCH: Self = Self(9);
    /// Which broker coordinates a group or a transaction.
    pub const FIND_COORDINATOR: Self = Self(10);
    /// A member enters a group or its rebalance.
    pub const JOIN_GROUP: Self = Self(11);
    /// A member says that it is alive.
    pub const HEARTBEAT: Self = Self(12);
    /// A member leaves its group.
    pub const LEAVE_GROUP: Self = Self(13);
    /// A member takes its assignment.
    pub const SYNC_GROUP: Self = Self(14);
    /// What the broker supports; the first request of most connections.
    pub const API_VERSIONS: Self = Self(18);
    /// An idempotent or transactional producer asks for its id.
    pub const INIT_PRODUCER_ID: Self = Self(22);
    /// The end of a transaction.
    pub const END_TXN: Self = Self(26);
    /// A group's offsets, written inside a transaction.
    pub const TXN_OFFSET_COMMIT: Self = Self(28);
}

/// Why bytes are not Kafka's framing. The stream cannot be followed any further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The size is below zero.
    #[error("a frame of {size_bytes} bytes: a size cannot be negative")]
    Negative {
        /// The size as sent.
        size_bytes: i32,
    },
    /// The size is above the decoder's limit.
    #[error("a frame of {size_bytes} bytes: the limit is {limit_bytes} bytes")]
    TooLarge {
        /// The size as sent.
        size_bytes: usize,
        /// The largest size that is accepted.
        limit_bytes: usize,
    },
}

/// Cuts a stream of bytes into frames, in whatever pieces the bytes arrive.
///
/// It holds the bytes it was given and no more: a size that was announced reserves nothing.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    taken_bytes: usize,
    limit_bytes: usize,
}

impl Default for FrameDecoder {
    fn default() -> Self {
        Self::with_limit(FRAME_BYTES_MAX)
    }
}

impl FrameDecoder {
    /// A decoder that refuses payloads of more than `limit_bytes`. [`Default`] refuses those of
    /// more than [`FRAME_BYTES_MAX`].
    #[must_use]
    pub fn with_limit(limit_bytes: usize) -> Self {
        Self {
            buffer: Vec::new(),
            taken_bytes: 0,
            limit_bytes,
        }
    }

    /// Adds the next bytes of the stream.
    pub fn extend(&mut self, bytes: &[u8]) {
        // Moved once per call, not once per frame: a buffer full of tiny frames stays linear.
        self.buffer.drain(..self.taken_bytes);
        self.taken_bytes = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Takes the next whole frame; `None` until more bytes are added.
    ///
    /// # Errors
    /// The next frame's size is negative or above the limit. Every later call says the same.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = self.buffer.get(self.taken_bytes..).unwrap_or_default();
        let Some(prefix) = rest.first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let announced = i32::from_be_bytes(*prefix);
        let size_bytes = usize::try_from(announced).map_err(|_| FrameError::Negative {
            size_bytes: announced,
        })?;
        if size_bytes > self.limit_bytes {
            return Err(FrameError::TooLarge {
                size_bytes,
                limit_bytes: self.limit_bytes,
            });
        }
        let frame_bytes = PREFIX_BYTES + size_bytes;
        let Some(bytes) = rest.get(..frame_bytes) else {
            return Ok(None);
        };
        let frame = Frame {
            bytes: bytes.to_vec(),
        };
        self.taken_bytes += frame_bytes;
        if self.taken_bytes == self.buffer.len() {
            self.empty();
        }
        Ok(Some(frame))
    }

    /// Bytes that were added and not taken yet: at the end of a stream, those of a frame that
    /// was never finished.
    #[must_use]
    pub fn unfinished_bytes(&self) -> usize {
        self.buffer.len() - self.taken_bytes
    }

    fn empty(&mut self) {
        self.taken_bytes = 0;
        self.buffer.clear();
        if self.buffer.capacity() > BUFFER_KEPT_BYTES {
            self.buffer = Vec::new();
        }
    }
}
