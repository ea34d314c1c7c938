//! Has it been done? The decision about a record.

mod decision;

pub use decision::Decision;
pub(crate) use decision::{answers_for, decide};
