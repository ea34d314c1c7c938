//! Sequences that failed once, as short as they became. Each is run before the random ones, and
//! often enough for its threads to meet.

use std::time::Duration;

use super::ground::Kind;
use super::op::{Attempt, Op, Pace};
use super::walk;
use crate::pipeline::Ordering;
use crate::testkit::Fault;

const ROUNDS: usize = 20;
const ALL: u8 = u8::MAX;

fn send(partition: usize) -> Op {
    Op::Send {
        partition,
        attempts: Vec::new(),
    }
}

fn rounds(ops: &[Op]) {
    for _ in 0..ROUNDS {
        if let Err(why) = walk(Kind::Memory, ops) {
            panic!("{why}\nafter {ops:#?}");
        }
    }
}

/// The lease after the crash ended in order before the record was handled again, and took the doubt
/// with it.
#[test]
fn doubt_lasts_until_its_records_are_handled() {
    let attempts = vec![Attempt::Slow, Attempt::Reject];
    rounds(&[
        Op::Send {
            partition: 0,
            attempts,
        },
        Op::Pace(Pace {
            uncommitted_records_max: 2,
            linger: Duration::from_secs(3600),
            shows_copies: false,
            ..Pace::default()
        }),
        Op::Assign { mask: 0b001 },
        Op::Settle,
        Op::Crash,
        Op::Assign { mask: 0b001 },
        Op::Settle,
    ]);
}

/// A restore that fails ended the wait of the other partitions for it, and a copy of what it had
/// not read was handled.
#[test]
fn a_restore_that_fails_lets_no_other_partition_go_on() {
    for after in 4..16 {
        let mut ops: Vec<_> = (0..7).map(|_| send(1)).collect();
        ops.extend([
            Op::Again {
                partition: 0,
                of: 6,
                altered: false,
            },
            Op::Elsewhere {
                partition: 1,
                count: 7,
            },
            Op::Plan {
                after,
                fault: Fault::Error,
            },
            Op::Assign { mask: ALL },
            Op::Settle,
        ]);
        rounds(&ops);
    }
}

/// A copy that waited for its first in the same partition was given back at the stop, and let go of
/// the first one's key: a copy in another partition was handled before the first had its mark.
#[test]
fn a_copy_that_is_given_back_does_not_free_the_key_of_its_first() {
    let slowly = |partition| Op::Send {
        partition,
        attempts: vec![Attempt::Retry, Attempt::Retry, Attempt::Slow],
    };
    let again = |partition| Op::Again {
        partition,
        of: 0,
        altered: false,
    };
    rounds(&[
        Op::Pace(Pace {
            order: Ordering::Unordered,
            uncommitted_records_max: 1000,
            linger: Duration::from_secs(3600),
            ..Pace::default()
        }),
        send(0),
        again(0),
        slowly(0),
        Op::Assign { mask: 0b001 },
        again(1),
        slowly(1),
        Op::Broken { partition: 0 },
        Op::Assign { mask: 0b010 },
        Op::Settle,
    ]);
}

/// Copies waited in two partitions for each other's firsts, which were done and never committed: no
/// wait for a key that was out of order asked for it, and the stop waited until its limit.
#[test]
fn copies_that_wait_for_each_other_out_of_order_have_their_firsts_committed() {
    let again = |partition, of| Op::Again {
        partition,
        of,
        altered: false,
    };
    let ops = [
        Op::Pace(Pace {
            order: Ordering::Unordered,
            uncommitted_records_max: 1000,
            linger: Duration::from_secs(3600),
            ..Pace::default()
        }),
        send(0),
        send(1),
        Op::Assign { mask: 0b011 },
        Op::Settle,
        again(0, 1),
        again(1, 0),
        send(0),
        send(1),
        Op::Settle,
        Op::Stop,
    ];
    if let Err(why) = walk(Kind::Memory, &ops) {
        panic!("{why}\nafter {ops:#?}");
    }
}
