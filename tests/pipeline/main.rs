//! The consumer on the embedded broker.
#![cfg(feature = "testkit")]

mod basics;
mod support;
