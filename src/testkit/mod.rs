//! What this crate's tests are written with, for yours too.

mod proxy;

pub use proxy::{
    ApiKey, DELAY_MAX, DelayLarge, FRAME_BYTES_MAX, FaultProxy, Faults, Frame, FrameDecoder,
    FrameError, Problem, ProxyError, RequestHeader, Sender, Stats,
};
