//! Records that a handler sends: they become readable together with the mark and the offset of the
//! record that they answer, or not at all.

mod effects;
mod error;
mod outgoing;
mod outlet;

pub use self::effects::Outbox;
pub use self::error::OutboxError;
pub use self::outgoing::Outgoing;
pub(crate) use self::outlet::Outlet;
