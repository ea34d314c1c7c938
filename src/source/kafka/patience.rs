//! Requests that are made while a rebalance waits: tried again where the answer may change.

use std::time::Duration;

use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode as Code};

/// For one attempt; all of them together stay below the default session time-out.
pub(super) const REQUEST_LIMIT: Duration = Duration::from_secs(7);
/// What the only attempt of one who has no time left gets.
const REQUEST_MIN: Duration = Duration::from_millis(500);
const ATTEMPTS: u32 = 3;
/// No answer in time has one more cause: offsets that an open transaction may still move are not
/// told before it has ended, which the brokers see to within its time-out and ten seconds.
const SILENT_ATTEMPTS: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_millis(400);

/// Asks, and asks again while the answer is one that passes: a coordinator or a leader that is just
/// moving must not end the consumer.
pub(super) fn patiently<T>(mut ask: impl FnMut() -> KafkaResult<T>) -> KafkaResult<T> {
    patiently_for(&|| Duration::MAX, |_| ask())
}

/// As `patiently`, while there is time `left`. Each attempt is told how long it may take.
pub(super) fn patiently_for<T>(
    left: &dyn Fn() -> Duration,
    mut ask: impl FnMut(Duration) -> KafkaResult<T>,
) -> KafkaResult<T> {
    let mut pause = FIRST_PAUSE;
    let mut attempt = 0;
    loop {
        attempt += 1;
        match ask(left().clamp(REQUEST_MIN, REQUEST_LIMIT)) {
            Err(error) if attempt < attempts_max(&error) && left() > pause => {
                tracing::warn!(%error, "the broker did not answer as it should; it is asked again");
                std::thread::sleep(pause);
                pause = (pause * 4).min(PAUSE_MAX);
            }
            answer => return answer,
        }
    }
}

fn attempts_max(error: &KafkaError) -> u32 {
    if error.rdkafka_error_code() == Some(Code::OperationTimedOut) {
        SILENT_ATTEMPTS
    } else if passes(error) {
        ATTEMPTS
    } else {
        1
    }
}

fn passes(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::BrokerTransportFailure
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
        for (code, attempts) in [
            (Code::BrokerTransportFailure, ATTEMPTS),
            (Code::OperationTimedOut, SILENT_ATTEMPTS),
        ] {
            let (answer, asked) = failing(code, 9);
            assert_eq!((answer.is_err(), asked), (true, attempts));
        }
    }

    #[test]
    fn whoever_has_no_time_left_asks_once() {
        let mut limits = Vec::new();
        let answer = patiently_for(&|| Duration::ZERO, |limit| {
            limits.push(limit);
            Err::<(), _>(KafkaError::OffsetFetch(Code::NotCoordinator))
        });
        assert_eq!((answer.is_err(), &limits[..]), (true, &[REQUEST_MIN][..]));
    }

    #[test]
    fn a_refusal_for_good_is_told_at_once() {
        let (answer, asked) = failing(Code::GroupAuthorizationFailed, 1);
        assert_eq!((answer.is_err(), asked), (true, 1));
    }
}
