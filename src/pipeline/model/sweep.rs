//! Every operation of the store fails once, at every place, in one scenario; then the process
//! dies there.

use std::time::Duration;

use super::RUNTIME;
use super::ground::Kind;
use super::op::{Attempt, Op, Pace};
use super::walk::Walk;
use crate::testkit::Fault;

const ALL: u8 = u8::MAX;

/// Copies within and across partitions, handlers that fail, a rebalance, work elsewhere, two
/// restarts. Each `Assign` starts the consumer again where the fault ended it.
fn scenario() -> Vec<Op> {
    let send = |partition, attempts: &[Attempt]| Op::Send {
        partition,
        attempts: attempts.to_vec(),
    };
    let again = |partition, of| Op::Again {
        partition,
        of,
        altered: false,
    };
    let assign = Op::Assign { mask: ALL };
    vec![
        send(0, &[]),
        again(0, 0),
        send(1, &[Attempt::Retry]),
        again(2, 0),
        Op::Keyless { partition: 2 },
        assign.clone(),
        Op::Settle,
        send(2, &[Attempt::Slow]),
        again(1, 2),
        Op::Revoke {
            mask: 0b011,
            lost: false,
        },
        send(0, &[Attempt::Panic]),
        Op::Elsewhere {
            partition: 1,
            count: 2,
        },
        again(2, 1),
        assign.clone(),
        Op::Settle,
        Op::Harden,
        Op::Stop,
        Op::Pace(Pace {
            uncommitted_records_max: 1,
            linger: Duration::ZERO,
            shows_copies: false,
            ..Pace::default()
        }),
        Op::Rewind {
            partition: 0,
            back: Some(2),
        },
        send(0, &[Attempt::Retry, Attempt::Retry]),
        send(1, &[]),
        again(1, 3),
        assign,
        Op::Settle,
        Op::Stop,
    ]
}

fn sweep(kind: Kind) {
    let ops = scenario();
    for fault in [Fault::Error, Fault::CrashBefore, Fault::CrashAfter] {
        let mut clean = None;
        for number in 0..1_000 {
            let mut walk = Walk::new(kind, RUNTIME.handle().clone());
            walk.plan(number, fault);
            if let Err(why) = walk.go(&ops) {
                panic!("{kind:?}, {fault:?} at operation {number}: {why}");
            }
            if !walk.fired {
                clean = Some(number);
                break;
            }
        }
        // A scenario of a handful of operations would prove little.
        assert!(clean > Some(30), "{fault:?}: {clean:?} operations");
    }
}

#[test]
fn any_operation_of_the_memory_store_may_fail_or_be_the_last() {
    sweep(Kind::Memory);
}

#[cfg(feature = "sled")]
#[test]
fn any_operation_of_the_sled_store_may_fail_or_be_the_last() {
    sweep(Kind::Sled);
}
