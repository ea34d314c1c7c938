//! The suite of stores in directories, compiled once for each engine.

mod floors;
#[cfg(feature = "redb")]
mod on_redb;
#[cfg(feature = "sled")]
mod on_sled;
