//! The user's code: what it gets, what it may record, how it fails.

mod delivery;
mod effects;

use std::fmt;
use std::future::Future;

pub use self::delivery::Delivery;
pub use self::effects::{EffectError, Effects};
use crate::error::BoxError;

/// How a handler did not succeed.
///
/// Every error converts into it by `?`, as [`Retry`](HandlerError::Retry). For that it is not an
/// [`Error`](std::error::Error) itself.
#[derive(Debug)]
#[non_exhaustive]
pub enum HandlerError {
    /// Another attempt may succeed. How many there are says the
    /// [`RetryPolicy`](crate::RetryPolicy).
    Retry(BoxError),
    /// No attempt will: the record itself is at fault. It goes to the
    /// [dead letters](crate::Builder::dead_letter) at once, and stops the consumer where there are
    /// none.
    Reject(BoxError),
}

impl HandlerError {
    /// Says that no attempt will succeed.
    pub fn reject(error: impl Into<BoxError>) -> Self {
        Self::Reject(error.into())
    }
}

impl<E: Into<BoxError>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::Retry(error.into())
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retry(error) => error.fmt(f),
            Self::Reject(error) => write!(f, "rejected: {error}"),
        }
    }
}

/// What a handler returns: `Ok` lets the record count as done, nothing else does.
pub type HandlerResult = Result<(), HandlerError>;

/// Handles new records. Closures go to [`run`](crate::IdempotentConsumer::run) as they are; this
/// trait is for handlers with a name, and goes to
/// [`run_handler`](crate::IdempotentConsumer::run_handler).
///
/// # The contract
///
/// Called for each record that is decided to be new. With [`Ordering::Partition`] that is one at a
/// time in the order of the partition; with the other orders several futures of one partition are
/// polled in turn. Each partition has a thread of its own. The effect must be complete when the
/// future returns `Ok`: the mark follows within milliseconds, the offset behind it.
///
/// [`Ordering::Partition`]: crate::Ordering::Partition
///
/// After a crash, records whose effect came less than the commit interval before it are handled
/// again. They come with [`in_doubt`](Delivery::in_doubt) set, and with the same
/// [`token`](Delivery::token) as before.
///
/// What it gets as `effects` is the store's: see [`EffectStore`](crate::EffectStore).
pub trait Handler<E = Effects>: Send + Sync + 'static {
    /// Handles one record.
    ///
    /// # Errors
    /// As [`HandlerError`] says. The record does not count as done: it is tried again, and in the
    /// end goes to the [dead letters](crate::Builder::dead_letter) or stops the consumer.
    fn handle(
        &self,
        delivery: &Delivery<'_>,
        effects: &mut E,
    ) -> impl Future<Output = HandlerResult>;
}

/// A closure as a handler.
pub(crate) struct HandlerFn<F>(pub(crate) F);

impl<E, F> Handler<E> for HandlerFn<F>
where
    F: AsyncFn(&Delivery<'_>, &mut E) -> HandlerResult + Send + Sync + 'static,
{
    async fn handle(&self, delivery: &Delivery<'_>, effects: &mut E) -> HandlerResult {
        (self.0)(delivery, effects).await
    }
}
