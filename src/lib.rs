#![doc = include_str!("../README.md")]

pub mod audit;
mod claim;
mod clock;
mod consumer;
mod dead_letter;
pub mod engine;
mod error;
mod handler;
pub mod key;
pub mod metrics;
mod outbox;
mod pipeline;
pub mod producer;
mod record;
mod retention;
mod retry;
mod source;
pub mod store;
#[cfg(any(feature = "testkit", feature = "cli"))]
pub mod testkit;

pub use claim::Decision;
pub use clock::{Clock, SystemClock};
pub use consumer::{Access, Builder, EffectStore, IdempotentConsumer};
pub use dead_letter::{DeadLetter, DeadLetterError};
pub use error::{BoxError, Error};
pub use handler::{Delivery, EffectError, Effects, Handler, HandlerError, HandlerResult};
pub use outbox::{Outbox, OutboxError, Outgoing, Transactional};
pub use pipeline::{Claimed, Counts, Mismatch, Ordering, Pull, Report, Restore, RestoreProgress};
pub use record::{Coordinates, Headers, NextOffset, Record, TopicPartition};
pub use retention::{AtCap, Held, Retention, Sweeper, Swept};
pub use retry::RetryPolicy;
#[cfg(feature = "testkit")]
pub use source::kafka::read_and_drop;
pub use source::{ClientConfig, SourceError};
#[cfg(feature = "postgres")]
pub use store::{SqlEffects, SqlError};
