//! The repository's own rules, where no compiler and no lint holds them: who may name what, how
//! long a file may be, what the documents must say. clippy.toml has the limit for functions.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod boundaries;
mod documents;
mod shape;
mod tree;
