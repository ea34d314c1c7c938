//! Requests that are made while a rebalance waits: tried again where the answer may change.

use std::time::Duration;

use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode as Code};

/// For one attempt; all of them together stay below the default session time-out.
pub(super) const REQUEST_LIMIT: Duration = Duration::from_secs(7);
const ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Asks, and asks again while the answer is one that passes: a coordinator or a leader that is just
/// moving must not end the consumer.
pub(super) fn patiently<T>(mut ask: impl FnMut() -> KafkaResult<T>) -> KafkaResult<T> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..ATTEMPTS {
        match ask() {
            Err(error) if passes(&error) => {
                tracing::warn!(%error, "the broker did not answer as it should; it is asked again");
                std::thread::sleep(pause);
                pause *= 4;
            }
            answer => return answer,
        }
    }
    ask()
}

fn passes(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::OperationTimedOut
                | Code::BrokerTransportFailure
                | Code::AllBrokersDown
                | Code::WaitingForCoordinator
                | Code::RequestTimedOut
                | Code::NetworkException
                | Code::CoordinatorLoadInProgress
                | Code::CoordinatorNotAvailable
                | Code::NotCoordinator
                | Code::LeaderNotAvailable
                | Code::NotLeaderForPartition
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(code: Code, failures: u32) -> (KafkaResult<()>, u32) {
        let mut asked = 0;
        let answer = patiently(|| {
            asked += 1;
            if asked > failures {
                Ok(())
            } else {
                Err(KafkaError::OffsetFetch(code))
            }
        });
        (answer, asked)
    }

    #[test]
    fn an_answer_that_passes_is_asked_for_again_but_not_for_ever() {
        assert_eq!(failing(Code::NotCoordinator, 2), (Ok(()), 3));
        let (answer, asked) = failing(Code::OperationTimedOut, 9);
        assert_eq!((answer.is_err(), asked), (true, ATTEMPTS));
    }

    #[test]
    fn a_refusal_for_good_is_told_at_once() {
        let (answer, asked) = failing(Code::GroupAuthorizationFailed, 1);
        assert_eq!((answer.is_err(), asked), (true, 1));
    }
}
