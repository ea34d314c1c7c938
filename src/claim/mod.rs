//! Has it been done? Claims on keys in flight, and the decision about a record.

mod decision;
mod table;

pub use decision::Decision;
pub(crate) use decision::{decide, first_seen};
pub(crate) use table::{Claim, Claims, HolderId};
