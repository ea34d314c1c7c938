//! What can happen to a consumer, one step after the other.

use std::time::Duration;

use proptest::prelude::*;

use crate::pipeline::Ordering;
use crate::testkit::Fault;

/// The topic's partitions.
pub(super) const PARTITIONS: usize = 3;

/// How one attempt at a key ends, before the key succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    Retry,
    Reject,
    Panic,
    /// It succeeds, after a while.
    Slow,
}

/// How a session is run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    pub(super) order: Ordering,
    pub(super) concurrency_max: Option<usize>,
    pub(super) uncommitted_records_max: usize,
    pub(super) linger: Duration,
    /// Whether copies are shown to a hook.
    pub(super) shows_copies: bool,
}

/// One step. Numbers are taken modulo what there is; a step that makes no sense is passed over, so
/// that every part of a sequence is a sequence.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// A record with a new key is produced.
    Send {
        partition: usize,
        attempts: Vec<Attempt>,
    },
    /// A copy of an earlier one; `altered` gives it another value.
    Again {
        partition: usize,
        of: usize,
        altered: bool,
    },
    /// A record without a key.
    Keyless { partition: usize },
    /// An offset without a record, as a transaction's marker takes it.
    Marker { partition: usize },
    /// Compaction removes a record that is not the last.
    Compact { partition: usize, nth: usize },
    /// Retention removes the oldest records, all but the last at most.
    Trim { partition: usize, count: usize },
    /// Records below the store's head are lost with the broker that had them, and others take
    /// their places.
    Truncate {
        partition: usize,
        back: usize,
        grown: usize,
    },
    /// The topic is deleted and created again.
    Recreate { partition: usize, grown: usize },
    /// The group assigns partitions; a consumer is started if none runs.
    Assign { mask: u8 },
    /// The group takes partitions away.
    Revoke { mask: u8, lost: bool },
    /// Everything that can be handled is.
    Settle,
    /// Everything that was handled becomes durable.
    Harden,
    /// The consumer is stopped in order.
    Stop,
    /// The process dies.
    Crash,
    /// Retention drops the oldest units of a partition, as far as it may.
    Expire { partition: usize, units: usize },
    /// The store fails at one of its next operations.
    Plan { after: u64, fault: Fault },
    /// Another member, with a store of its own, handles records of a partition and commits them.
    Elsewhere { partition: usize, count: usize },
    /// The group's position is set back by `back` records, or deleted.
    Rewind {
        partition: usize,
        back: Option<usize>,
    },
    /// The group refuses a commit; `applied` says that it carries it out all the same.
    Refuse { applied: bool },
    /// Reading a partition fails.
    Broken { partition: usize },
    /// How the next session is run.
    Pace(Pace),
}

fn partition() -> std::ops::Range<usize> {
    0..PARTITIONS
}

fn attempts() -> impl Strategy<Value = Vec<Attempt>> {
    let one = prop_oneof![
        4 => Just(Attempt::Retry),
        1 => Just(Attempt::Reject),
        1 => Just(Attempt::Panic),
        3 => Just(Attempt::Slow),
    ];
    prop_oneof![
        3 => Just(Vec::new()),
        1 => proptest::collection::vec(one, 1..4),
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::Error),
        Just(Fault::CrashBefore),
        Just(Fault::CrashAfter)
    ]
}

fn pace() -> impl Strategy<Value = Op> {
    let linger = prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_millis(1)),
        // Longer than any sequence: what asks for a commit is the limit, or the end.
        Just(Duration::from_secs(3600)),
    ];
    let order = prop_oneof![
        Just(Ordering::Partition),
        Just(Ordering::Key),
        Just(Ordering::Unordered),
    ];
    let concurrency = proptest::option::of(1..6_usize);
    let uncommitted = prop_oneof![1..5_usize, Just(1000)];
    (order, concurrency, uncommitted, linger, any::<bool>()).prop_map(
        |(order, concurrency_max, uncommitted_records_max, linger, shows_copies)| {
            Op::Pace(Pace {
                order,
                concurrency_max,
                uncommitted_records_max,
                linger,
                shows_copies,
            })
        },
    )
}

fn records() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (partition(), attempts())
            .prop_map(|(partition, attempts)| Op::Send { partition, attempts }),
        8 => (partition(), any::<usize>(), proptest::bool::weighted(0.1))
            .prop_map(|(partition, of, altered)| Op::Again { partition, of, altered }),
        1 => partition().prop_map(|partition| Op::Keyless { partition }),
        1 => partition().prop_map(|partition| Op::Marker { partition }),
    ]
}

fn logs() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (partition(), any::<usize>())
            .prop_map(|(partition, nth)| Op::Compact { partition, nth }),
        2 => (partition(), 1..4_usize)
            .prop_map(|(partition, count)| Op::Trim { partition, count }),
        1 => (partition(), 0..3_usize, 0..5_usize)
            .prop_map(|(partition, back, grown)| Op::Truncate { partition, back, grown }),
        1 => (partition(), 0..6_usize)
            .prop_map(|(partition, grown)| Op::Recreate { partition, grown }),
    ]
}

fn group() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (1..1_u8 << PARTITIONS).prop_map(|mask| Op::Assign { mask }),
        4 => (1..1_u8 << PARTITIONS, any::<bool>())
            .prop_map(|(mask, lost)| Op::Revoke { mask, lost }),
        3 => (partition(), 1..4_usize)
            .prop_map(|(partition, count)| Op::Elsewhere { partition, count }),
        2 => (partition(), proptest::option::of(1..6_usize))
            .prop_map(|(partition, back)| Op::Rewind { partition, back }),
        2 => any::<bool>().prop_map(|applied| Op::Refuse { applied }),
    ]
}

fn process() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => Just(Op::Settle),
        2 => Just(Op::Harden),
        2 => Just(Op::Stop),
        2 => Just(Op::Crash),
        3 => (partition(), 1..6_usize)
            .prop_map(|(partition, units)| Op::Expire { partition, units }),
        4 => (0..12_u64, fault()).prop_map(|(after, fault)| Op::Plan { after, fault }),
        1 => partition().prop_map(|partition| Op::Broken { partition }),
        2 => pace(),
    ]
}

/// A sequence of steps.
pub(super) fn sequence() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![8 => records(), 2 => logs(), 6 => group(), 5 => process()];
    proptest::collection::vec(op, 4..40)
}
