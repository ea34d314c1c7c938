//! What this crate's tests are written with, for yours too.

#[cfg(feature = "testkit")]
mod broker;
#[cfg(feature = "testkit")]
mod fault_store;
#[cfg(feature = "testkit")]
pub mod history;
#[cfg(feature = "testkit")]
mod letters;
#[cfg(feature = "testkit")]
mod manual_clock;
mod proxy;

#[cfg(feature = "testkit")]
pub use broker::{BrokerError, EmbeddedBroker, Produced};
#[cfg(feature = "testkit")]
pub use fault_store::{Fault, FaultStore, Fired, Operation};
#[cfg(feature = "testkit")]
pub use letters::{Failed, Letters};
#[cfg(feature = "testkit")]
pub use manual_clock::ManualClock;
pub use proxy::{
    ApiKey, DELAY_MAX, DelayLarge, FRAME_BYTES_MAX, FaultProxy, Faults, Frame, FrameDecoder,
    FrameError, Problem, ProxyError, RequestHeader, Sender, Stats,
};
