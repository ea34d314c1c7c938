//! For each rule settings that break it.

use super::{Client, IDEMPOTENT, IN_FLIGHT, Java, Librdkafka, NOT};

/// Settings, and the finding that they must give beside whatever else.
pub(super) type Case = (
    Client,
    &'static [(&'static str, &'static str)],
    &'static str,
);

pub(super) const CASES: &[Case] = &[
    (Librdkafka, &[], "enable.idempotence is not set"),
    (Librdkafka, &[NOT], "enable.idempotence=false"),
    (
        Java,
        &[("enable.idempotence", "FALSE")],
        "enable.idempotence=FALSE",
    ),
    (
        Librdkafka,
        &[NOT, ("transactional.id", "t")],
        "enable.idempotence=false beside transactional.id=t",
    ),
    (
        Java,
        &[NOT, ("transactional.id", "t")],
        "enable.idempotence=false beside transactional.id=t",
    ),
    (
        Librdkafka,
        &[],
        "enable.idempotence is not set beside max.in.flight.requests.per.connection=1000000 \
         (default) and retries=2147483647 (default)",
    ),
    (
        Librdkafka,
        &[("max.in.flight", "2"), ("message.send.max.retries", "1")],
        "max.in.flight=2 beside enable.idempotence=false (default) and message.send.max.retries=1",
    ),
    (
        Java,
        &[NOT],
        "enable.idempotence=false beside max.in.flight.requests.per.connection=5 (default) and \
         retries=2147483647 (default)",
    ),
    (
        Librdkafka,
        &[IDEMPOTENT, ("topic.request.required.acks", "1")],
        "topic.request.required.acks=1 beside enable.idempotence=true",
    ),
    (
        Librdkafka,
        &[("transactional.id", "t"), ("acks", "0")],
        "acks=0 beside enable.idempotence=false (default)",
    ),
    (
        Java,
        &[IDEMPOTENT, ("acks", "1")],
        "acks=1 beside enable.idempotence=true",
    ),
    (
        Java,
        &[("acks", "0")],
        "acks=0 beside enable.idempotence=true (default)",
    ),
    (Librdkafka, &[("acks", "2")], "acks=2"),
    (Java, &[NOT, ("acks", "1")], "acks=1"),
    (
        Librdkafka,
        &[IDEMPOTENT, ("retries", "0")],
        "retries=0 beside enable.idempotence=true",
    ),
    (
        Java,
        &[IDEMPOTENT, ("retries", "0")],
        "retries=0 beside enable.idempotence=true",
    ),
    (
        Java,
        &[("retries", "0")],
        "retries=0 beside enable.idempotence=true (default)",
    ),
    (Librdkafka, &[("retries", "0")], "retries=0"),
    (Java, &[NOT, ("retries", "0")], "retries=0"),
    (
        Librdkafka,
        &[IDEMPOTENT, ("max.in.flight", "6")],
        "max.in.flight=6 beside enable.idempotence=true",
    ),
    (
        Java,
        &[(IN_FLIGHT, "6")],
        "max.in.flight.requests.per.connection=6 beside enable.idempotence=true (default)",
    ),
    (
        Librdkafka,
        &[IDEMPOTENT, ("queuing.strategy", "lifo")],
        "queuing.strategy=lifo beside enable.idempotence=true",
    ),
    (
        Librdkafka,
        &[IDEMPOTENT, ("queue.buffering.backpressure.threshold", "2")],
        "queue.buffering.backpressure.threshold=2 beside enable.idempotence=true",
    ),
    (
        Librdkafka,
        &[("enable.gapless.guarantee", "true")],
        "enable.gapless.guarantee=true beside enable.idempotence=false (default)",
    ),
    (
        Librdkafka,
        &[IDEMPOTENT, ("message.timeout.ms", "0")],
        "message.timeout.ms=0",
    ),
    (
        Librdkafka,
        &[IDEMPOTENT, ("delivery.timeout.ms", "7"), ("linger.ms", "7")],
        "delivery.timeout.ms=7 beside linger.ms=7",
    ),
    (
        Librdkafka,
        &[("transactional.id", "t"), ("linger.ms", "60000")],
        "linger.ms=60000 beside transaction.timeout.ms=60000 (default)",
    ),
    (
        Librdkafka,
        &[IDEMPOTENT, ("message.timeout.ms", "30004")],
        "message.timeout.ms=30004 beside linger.ms=5 (default) and request.timeout.ms=30000 (default)",
    ),
    (
        Librdkafka,
        &[IDEMPOTENT, ("request.timeout.ms", "300000")],
        "request.timeout.ms=300000 beside delivery.timeout.ms=300000 (default) and linger.ms=5 (default)",
    ),
    (
        Java,
        &[
            ("delivery.timeout.ms", "1000"),
            ("linger.ms", "701"),
            ("request.timeout.ms", "300"),
        ],
        "delivery.timeout.ms=1000 beside linger.ms=701 and request.timeout.ms=300",
    ),
    (
        Librdkafka,
        &[
            ("transactional.id", "t"),
            ("transaction.timeout.ms", "30004"),
        ],
        "transaction.timeout.ms=30004 beside linger.ms=5 (default) and request.timeout.ms=30000 (default)",
    ),
    (
        Librdkafka,
        &[("transactional.id", "t"), ("delivery.timeout.ms", "60001")],
        "delivery.timeout.ms=60001 beside transaction.timeout.ms=60000 (default) and transactional.id=t",
    ),
    (
        Librdkafka,
        &[("transactional.id", "t"), ("socket.timeout.ms", "60101")],
        "socket.timeout.ms=60101 beside transaction.timeout.ms=60000 (default) and transactional.id=t",
    ),
    (
        Librdkafka,
        &[IDEMPOTENT, ("socket.timeout.ms", "29999")],
        "socket.timeout.ms=29999 beside request.timeout.ms=30000 (default)",
    ),
    (
        Librdkafka,
        &[IDEMPOTENT, ("delivery.report.only.error", "1")],
        "delivery.report.only.error=1",
    ),
    (
        Java,
        &[
            ("transactional.id", "t"),
            ("transaction.timeout.ms", "60000"),
            ("transaction.two.phase.commit.enable", "true"),
        ],
        "transaction.two.phase.commit.enable=true beside transaction.timeout.ms=60000",
    ),
];
