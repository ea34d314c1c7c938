//! What to do about the errors of a producer.

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

/// Ends without a full stop.
pub(super) fn remedy(error: &KafkaError, timeout_ms: &str) -> String {
    let Some(code) = error.rdkafka_error_code() else {
        return "See what the client says".to_owned();
    };
    let remedy = match code {
        Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition => {
            "Create the topic: this crate does not"
        }
        Code::MessageSizeTooLarge => {
            "With its added headers the letter is larger than its record: raise max.message.bytes \
             of the dead-letter topic, or message.max.bytes where the brokers or the dead letter's \
             producer set a lower one"
        }
        Code::InvalidTimestamp => {
            "The letter has the time of this machine, which is too far from the broker's: set the \
             clock, or set message.timestamp.type=LogAppendTime on the dead-letter topic"
        }
        Code::InvalidRecord => {
            "A compacted topic takes nothing without a key: set cleanup.policy=delete on the \
             dead-letter topic"
        }
        Code::TopicAuthorizationFailed
        | Code::ClusterAuthorizationFailed
        | Code::SaslAuthenticationFailed
        | Code::Authentication => {
            "The principal needs to be let in, and Describe and Write on the dead-letter topic"
        }
        Code::MessageTimedOut => {
            return format!(
                "It was tried for delivery.timeout.ms={timeout_ms} and may have been written all \
                 the same; then a second letter follows. Look at the brokers"
            );
        }
        _ => "Look at the brokers and at what the client logs",
    };
    remedy.to_owned()
}
