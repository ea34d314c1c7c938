//! Whether the group checks who commits.
//!
//! librdkafka tells the generation, but rdkafka 0.39 does not hand it on.
#![allow(unsafe_code)]

use rdkafka::bindings as sys;
use rdkafka::consumer::{BaseConsumer, Consumer as _};

use super::context::Context;

/// Whether the member is of a generation. A member that was shut out and is not told yet has none;
/// the brokers take a transaction without one for one that does not want to be checked, and let it
/// commit positions of partitions that are others' by now.
pub(super) fn has_generation(consumer: &BaseConsumer<Context>) -> bool {
    // SAFETY: the client is alive for the whole call.
    let metadata = unsafe { sys::rd_kafka_consumer_group_metadata(consumer.client().native_ptr()) };
    if metadata.is_null() {
        return false;
    }
    // SAFETY: it is not null, it is this function's own, and it is not used behind its destruction.
    let generation = unsafe {
        let generation = sys::rd_kafka_consumer_group_metadata_generation_id(metadata);
        sys::rd_kafka_consumer_group_metadata_destroy(metadata);
        generation
    };
    generation >= 0
}
