//! placeholder
#![allow(missing_docs, dead_code)]
mod error;
pub mod key;
mod record;
pub mod store;
pub use error::BoxError;
pub use record::*;
#[derive(Clone, Copy)]
pub enum Decision {
    MissingKey,
}
