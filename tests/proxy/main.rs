//! The fault proxy against a scripted upstream, and `kafka-lab-slow` as a user runs it.

#![cfg(any(feature = "testkit", feature = "cli"))]
// The exception for tests in clippy.toml does not reach their helper functions.
#![allow(clippy::unwrap_used, clippy::panic)]

mod framing;

mod delays;
mod forwarding;
mod hostile;
mod interruptions;
mod lost_replies;
mod start;

#[cfg(feature = "cli")]
mod commands;

#[cfg(feature = "cli")]
mod lab;
mod support;
