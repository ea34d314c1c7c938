//! placeholder

#[cfg(any(feature = "testkit", feature = "cli"))]
pub mod testkit;
