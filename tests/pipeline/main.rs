//! The consumer on the embedded broker.
#![cfg(feature = "testkit")]

mod changed_topic;
mod decisions;
mod doubt;
mod durability;
mod failures;
mod identities;
mod members;
mod offsets;
mod parallel;
mod pulling;
mod refusals;
mod restarts;
mod restore;
mod scripted;
mod shutdown;
mod support;
