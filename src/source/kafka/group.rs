//! The membership as others need it: a transaction that commits positions names it, and is refused
//! where the member has been replaced.

use std::sync::{Arc, Weak};

use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerGroupMetadata};

use super::context::Context;

/// The membership of one consumer, for as long as that lives.
#[derive(Clone)]
pub(crate) struct Group {
    // Not a reference that counts: whoever sends must not keep the client from being closed.
    consumer: Weak<BaseConsumer<Context>>,
}

impl Group {
    pub(super) fn new(consumer: &Arc<BaseConsumer<Context>>) -> Self {
        Self {
            consumer: Arc::downgrade(consumer),
        }
    }

    /// Who is a member right now, of which generation. `None` once the consumer is gone.
    pub(crate) fn metadata(&self) -> Option<ConsumerGroupMetadata> {
        self.consumer.upgrade()?.group_metadata()
    }
}
