//! What the client's errors mean for a transaction.

use rdkafka::error::{KafkaError, RDKafkaError, RDKafkaErrorCode as Code};

use super::OutboxError;
use super::round::Fault;

/// What a step of the transaction failed with.
pub(super) fn step(error: KafkaError, transactional_id: &str) -> Fault {
    match error {
        KafkaError::Transaction(error) => of_transaction(&error, transactional_id),
        // Of the flush before a commit: what it waited for comes later.
        KafkaError::Flush(_) => Fault::Again(error.to_string()),
        error => Fault::Abort(error.to_string()),
    }
}

fn of_transaction(error: &RDKafkaError, transactional_id: &str) -> Fault {
    let message = format!("{} ({})", error.string(), error.name());
    let fenced = matches!(
        error.code(),
        // The last: the coordinator has ended a transaction that took too long, and it comes to the
        // client before its new epoch does.
        Code::Fenced
            | Code::ProducerFenced
            | Code::InvalidProducerEpoch
            | Code::InvalidTransactionalState
    );
    if error.is_fatal() && fenced {
        return Fault::Fenced(message);
    }
    if is_denial(error.code()) {
        return Fault::Never(denied(transactional_id, message));
    }
    if error.is_fatal() {
        return Fault::Fatal(message);
    }
    if error.is_retriable() {
        return Fault::Again(message);
    }
    match error.code() {
        Code::IllegalGeneration | Code::StaleMemberEpoch | Code::RebalanceInProgress => {
            Fault::Stale(message)
        }
        Code::UnknownMemberId | Code::FencedInstanceId | Code::FencedMemberEpoch => {
            Fault::Expelled(message)
        }
        _ => Fault::Abort(message),
    }
}

fn denied(transactional_id: &str, message: String) -> OutboxError {
    OutboxError::Denied {
        transactional_id: transactional_id.to_owned(),
        message,
    }
}

fn is_denial(code: Code) -> bool {
    matches!(
        code,
        Code::TopicAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::TransactionalIdAuthorizationFailed
            | Code::SaslAuthenticationFailed
            | Code::Authentication
    )
}

/// What a record failed with.
pub(super) fn record(error: &KafkaError, topic: &str) -> Fault {
    let remedy = error.rdkafka_error_code().map_or_else(
        // A name that holds a zero byte, and the like.
        || Some("Correct the handler that sends it"),
        remedy,
    );
    match remedy {
        Some(remedy) => Fault::Never(OutboxError::Record {
            topic: topic.to_owned(),
            message: error.to_string(),
            remedy,
        }),
        None => Fault::Abort(format!("a record for {topic} was not written: {error}")),
    }
}

/// What to do about an error that would come again with every attempt. Ends without a full stop.
fn remedy(code: Code) -> Option<&'static str> {
    Some(match code {
        Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition => {
            "Create the topic, with as many partitions as are sent to: this crate does not"
        }
        Code::InvalidTopic => "Kafka has no topic of such a name: correct the handler",
        Code::MessageSizeTooLarge | Code::MessageBatchTooLarge => {
            "Raise max.message.bytes of the topic (or message.max.bytes, where the brokers or \
             `Transactional::config` set a lower one), or send less in one record"
        }
        Code::InvalidTimestamp => {
            "Its timestamp is too far from the brokers' clock: set message.timestamp.type=\
             LogAppendTime on the topic, or widen its message.timestamp limits"
        }
        Code::InvalidRecord => {
            "A compacted topic takes nothing without a key: give it one, or set \
             cleanup.policy=delete on the topic"
        }
        Code::PolicyViolation => "Look at the topic's policies",
        Code::TopicAuthorizationFailed | Code::ClusterAuthorizationFailed => {
            "The principal needs Describe and Write on the topic"
        }
        _ => return None,
    })
}
