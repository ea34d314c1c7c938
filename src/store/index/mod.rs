//! Which keys are known: the newest in memory, all others in sorted runs beside the log.
//!
//! The log is the truth. A run holds what it says of a stretch of it, and everything here can be
//! made anew from it; so what is damaged here is thrown away when a store is opened, and refused
//! where it is met later. The layout and what a crash leaves are in docs/design.md.

mod known;
mod table;

#[cfg(any(feature = "sled", feature = "redb"))]
mod bits;
#[cfg(any(feature = "sled", feature = "redb"))]
mod block;
#[cfg(any(feature = "sled", feature = "redb"))]
mod filter;
#[cfg(any(feature = "sled", feature = "redb"))]
mod manifest;
#[cfg(any(feature = "sled", feature = "redb"))]
mod merge;
#[cfg(any(feature = "sled", feature = "redb"))]
mod parts;
#[cfg(any(feature = "sled", feature = "redb"))]
mod run;
#[cfg(any(feature = "sled", feature = "redb"))]
mod sealer;
#[cfg(any(feature = "sled", feature = "redb"))]
mod tiered;
#[cfg(any(feature = "sled", feature = "redb"))]
mod tiers;
#[cfg(any(feature = "sled", feature = "redb"))]
mod writer;

#[cfg(any(feature = "sled", feature = "redb"))]
pub(super) use self::manifest::Covered;
pub(super) use self::table::Table;
#[cfg(any(feature = "sled", feature = "redb"))]
pub(super) use self::tiered::{Bounds, Index};
