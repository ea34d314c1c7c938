//! What goes wrong with the broker, and with the way to it.

use std::time::Duration;

use idempotent_consumer::testkit::{ApiKey, FaultProxy};

use crate::chance::Chance;
use crate::support::kafka::Kafka;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    Calm,
    /// All connections are closed, and new ones too.
    Cut,
    /// Connections stay, and nothing passes.
    Stall,
    /// Every request takes its time.
    Slow,
    /// The broker does what it is asked, and its answers get lost.
    LostReplies,
    BrokerStops,
    BrokerCrashes,
}

const DELAY_MAX: Duration = Duration::from_millis(300);
const REPLIES_MAX: usize = 3;
const KINDS: &[ApiKey] = &[
    ApiKey::FETCH,
    ApiKey::HEARTBEAT,
    ApiKey::OFFSET_COMMIT,
    ApiKey::OFFSET_FETCH,
    ApiKey::JOIN_GROUP,
    ApiKey::SYNC_GROUP,
];

impl Weather {
    pub(crate) const ALL: &[Self] = &[
        Self::Calm,
        Self::Cut,
        Self::Stall,
        Self::Slow,
        Self::LostReplies,
        Self::BrokerStops,
        Self::BrokerCrashes,
    ];

    pub(crate) fn begin(self, kafka: &Kafka, proxy: &FaultProxy, chance: &mut Chance) {
        match self {
            Self::Calm => {}
            Self::Cut => proxy.cut(),
            Self::Stall => proxy.stall(),
            Self::Slow => {
                let delay = chance.time_below(DELAY_MAX);
                proxy.change(|faults| faults.delay_all = delay);
            }
            Self::LostReplies => {
                for kind in KINDS {
                    let count = u32::try_from(chance.below(REPLIES_MAX)).unwrap();
                    // A client waits for minutes for the answer to these: a network does not lose it
                    // and leave the connection.
                    let waits = [ApiKey::JOIN_GROUP, ApiKey::SYNC_GROUP].contains(kind);
                    if !waits && chance.one_in(2) {
                        proxy.drop_replies(*kind, count);
                    } else {
                        proxy.disconnect_before_replies(*kind, count);
                    }
                }
            }
            Self::BrokerStops => kafka.stop(),
            Self::BrokerCrashes => kafka.kill(),
        }
    }

    pub(crate) fn end(self, kafka: &Kafka, proxy: &FaultProxy) {
        match self {
            Self::BrokerStops | Self::BrokerCrashes => kafka.resume(),
            _ => proxy.heal(),
        }
    }
}
