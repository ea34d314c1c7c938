//! Records that a handler sends: they become readable together with the mark and the offset of the
//! record that they answer, or not at all.

mod effects;
mod error;
mod kafka;
mod kafka_errors;
mod outgoing;
mod outlet;
mod patience;
mod round;
mod settings;
mod transactional;

pub use self::effects::Outbox;
pub use self::error::OutboxError;
pub use self::outgoing::Outgoing;
pub(crate) use self::outlet::Outlet;
pub use self::transactional::Transactional;
