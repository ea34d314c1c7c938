//! The rules, each with its reason.

use super::Client;
use super::settings::{Settings, is_all};

pub(super) struct Rule {
    /// `None` for both.
    pub(super) client: Option<Client>,
    /// All that it looks at, named in a finding.
    pub(super) settings: &'static [&'static str],
    breaks: fn(&Settings<'_>) -> bool,
    pub(super) reason: &'static str,
    pub(super) fix: &'static str,
}

impl Rule {
    pub(super) fn is_broken(&self, settings: &Settings<'_>) -> bool {
        self.client.is_none_or(|client| client == settings.client) && (self.breaks)(settings)
    }
}

const IDEMPOTENCE: &str = "enable.idempotence";
const ACKS: &str = "acks";
const RETRIES: &str = "retries";
const IN_FLIGHT: &str = "max.in.flight.requests.per.connection";
const DELIVERY: &str = "delivery.timeout.ms";
const REQUEST: &str = "request.timeout.ms";
const LINGER: &str = "linger.ms";
const TRANSACTIONAL: &str = "transactional.id";
const TRANSACTION: &str = "transaction.timeout.ms";
const TWO_PHASE: &str = "transaction.two.phase.commit.enable";
const SOCKET: &str = "socket.timeout.ms";
const STRATEGY: &str = "queuing.strategy";
const THRESHOLD: &str = "queue.buffering.backpressure.threshold";
const GAPLESS: &str = "enable.gapless.guarantee";
const ONLY_ERRORS: &str = "delivery.report.only.error";

/// What the broker keeps of each producer and partition.
const BATCHES_KNOWN: f64 = 5.0;

const LIBRDKAFKA: Option<Client> = Some(Client::Librdkafka);
const JAVA: Option<Client> = Some(Client::Java);
const BOTH: Option<Client> = None;

pub(super) const RULES: &[Rule] = &[
    Rule {
        client: LIBRDKAFKA,
        settings: &[IDEMPOTENCE],
        breaks: |all| is_off(all) && !all.is_set(IDEMPOTENCE),
        reason: "librdkafka's default is false, the Java client's is true; without it a request \
                 that is sent again, because its answer was lost, is written again",
        fix: "set it to true, or use producer::guarded",
    },
    Rule {
        client: BOTH,
        settings: &[IDEMPOTENCE],
        breaks: |all| is_off(all) && all.is_set(IDEMPOTENCE) && !is_transactional(all),
        reason: "a request that is sent again, because its answer was lost, is written again: its \
                 records carry nothing that the broker could know the copy by",
        fix: "set it to true",
    },
    Rule {
        client: BOTH,
        settings: &[IDEMPOTENCE, TRANSACTIONAL],
        breaks: |all| is_off(all) && is_transactional(all),
        reason: "the client refuses both together: a transaction's records are numbered by an \
                 idempotent producer",
        fix: "set enable.idempotence to true, or remove it",
    },
    Rule {
        client: BOTH,
        settings: &[IDEMPOTENCE, IN_FLIGHT, RETRIES],
        breaks: |all| is_off(all) && above(all, IN_FLIGHT, 1.0) && above(all, RETRIES, 0.0),
        reason: "a request that fails and is sent again is written behind those that were in \
                 flight with it: records change their order",
        fix: "set enable.idempotence to true, which keeps the order of up to five requests",
    },
    Rule {
        client: BOTH,
        settings: &[ACKS, IDEMPOTENCE],
        breaks: |all| is_refused_with_idempotence(all) && is_weak(all),
        reason: "the client refuses both together: a leader that dies takes acknowledged records \
                 with it, and with them what copies are known by",
        fix: "set acks to all, or remove it",
    },
    Rule {
        client: JAVA,
        settings: &[ACKS, IDEMPOTENCE],
        breaks: |all| is_default_alone(all) && is_weak(all),
        reason: "idempotence is switched off with no more than a line at INFO: retries make copies \
                 and change the order, and the leader's death loses records",
        fix: "set acks to all, or remove it, and set enable.idempotence to true, so that a conflict \
              is refused",
    },
    Rule {
        client: BOTH,
        settings: &[ACKS],
        breaks: |all| !is_on(all) && is_weak(all),
        reason: "records count as written before their replicas have them; the leader's death loses \
                 them",
        fix: "set it to all, or remove it",
    },
    Rule {
        client: BOTH,
        settings: &[RETRIES, IDEMPOTENCE],
        breaks: |all| is_refused_with_idempotence(all) && below(all, RETRIES, 1.0),
        reason: "the client refuses both together: without retries one lost answer leaves a gap in \
                 the numbers that copies are known by",
        fix: "remove retries: delivery.timeout.ms bounds them",
    },
    Rule {
        client: JAVA,
        settings: &[RETRIES, IDEMPOTENCE],
        breaks: |all| is_default_alone(all) && below(all, RETRIES, 1.0),
        reason: "idempotence is switched off with no more than a line at INFO, and every leader \
                 that moves fails records, which whoever sends them again may double",
        fix: "remove retries: delivery.timeout.ms bounds them",
    },
    Rule {
        client: BOTH,
        settings: &[RETRIES],
        breaks: |all| !is_on(all) && below(all, RETRIES, 1.0),
        reason: "a leader that moves, a controller that restarts or a lost connection fails the \
                 record, although it may have been written; whoever sends it again makes a copy",
        fix: "remove it: delivery.timeout.ms bounds them",
    },
    Rule {
        client: BOTH,
        settings: &[IN_FLIGHT, IDEMPOTENCE],
        breaks: |all| is_on(all) && all.is_set(IN_FLIGHT) && above(all, IN_FLIGHT, BATCHES_KNOWN),
        reason: "the client refuses both together: brokers keep the last five batches of a \
                 producer to know a copy by",
        fix: "set it to 5 at most, or remove it",
    },
    Rule {
        client: LIBRDKAFKA,
        settings: &[STRATEGY, IDEMPOTENCE],
        breaks: |all| is_on(all) && all.value(STRATEGY) == "lifo",
        reason: "the client refuses both together: records are numbered in the order of sending",
        fix: "remove queuing.strategy",
    },
    Rule {
        client: LIBRDKAFKA,
        settings: &[THRESHOLD, IDEMPOTENCE],
        breaks: |all| is_on(all) && above(all, THRESHOLD, 1.0),
        reason: "the client refuses both together: batches are numbered when they are made, one \
                 ahead at most",
        fix: "remove queue.buffering.backpressure.threshold",
    },
    Rule {
        client: LIBRDKAFKA,
        settings: &[GAPLESS, IDEMPOTENCE],
        breaks: |all| is_off(all) && all.flag(GAPLESS) == Some(true),
        reason: "the client refuses it without idempotence",
        fix: "set enable.idempotence to true",
    },
    Rule {
        client: LIBRDKAFKA,
        settings: &[DELIVERY],
        breaks: |all| below(all, DELIVERY, 1.0),
        reason: "a record that cannot be written is waited for without end and in silence",
        fix: "set a number of milliseconds, or remove it",
    },
    Rule {
        client: LIBRDKAFKA,
        settings: &[DELIVERY, LINGER],
        // Where linger.ms is not set, the client lowers it.
        breaks: |all| {
            all.is_set(LINGER) && above(all, DELIVERY, 0.0) && !exceeds(all, DELIVERY, LINGER, 0.0)
        },
        reason: "the client refuses it: a record's time would be over before its batch is sent",
        fix: "let delivery.timeout.ms be linger.ms and request.timeout.ms together, at least",
    },
    Rule {
        client: LIBRDKAFKA,
        settings: &[DELIVERY, LINGER, REQUEST],
        breaks: |all| {
            !delivers_within_transaction(all)
                && above(all, DELIVERY, 0.0)
                && gives_up_early(all, DELIVERY)
        },
        reason: "records are reported as failed before one answer can have come, although they may \
                 be written; whoever sends them again makes a copy that idempotence cannot know",
        fix: "let delivery.timeout.ms be linger.ms and request.timeout.ms together, at least",
    },
    Rule {
        client: JAVA,
        settings: &[DELIVERY, LINGER, REQUEST],
        // Where it is not set, the client raises it.
        breaks: |all| all.is_set(DELIVERY) && gives_up_early(all, DELIVERY),
        reason: "the client refuses it: records would be reported as failed before one answer can \
                 have come, although they may be written",
        fix: "let delivery.timeout.ms be linger.ms and request.timeout.ms together, at least",
    },
    Rule {
        client: LIBRDKAFKA,
        settings: &[TRANSACTION, LINGER],
        breaks: |all| {
            delivers_within_transaction(all)
                && all.is_set(LINGER)
                && !exceeds(all, TRANSACTION, LINGER, 0.0)
        },
        reason: "the client refuses it: delivery.timeout.ms follows transaction.timeout.ms where it \
                 is not set, and a record's time would be over before its batch is sent",
        fix: "let transaction.timeout.ms be linger.ms and request.timeout.ms together, at least",
    },
    Rule {
        client: LIBRDKAFKA,
        settings: &[TRANSACTION, LINGER, REQUEST],
        breaks: |all| delivers_within_transaction(all) && gives_up_early(all, TRANSACTION),
        reason: "delivery.timeout.ms follows transaction.timeout.ms where it is not set, so records \
                 fail before one answer can have come",
        fix: "let transaction.timeout.ms be linger.ms and request.timeout.ms together, at least",
    },
    Rule {
        client: LIBRDKAFKA,
        settings: &[DELIVERY, TRANSACTION, TRANSACTIONAL],
        breaks: |all| {
            is_transactional(all)
                && all.is_set(DELIVERY)
                && exceeds(all, DELIVERY, TRANSACTION, 0.0)
        },
        reason: "the client refuses it: the transaction would end before its records are given up",
        fix: "set delivery.timeout.ms to transaction.timeout.ms at most, or remove it",
    },
    Rule {
        client: LIBRDKAFKA,
        settings: &[SOCKET, TRANSACTION, TRANSACTIONAL],
        breaks: |all| {
            is_transactional(all) && all.is_set(SOCKET) && exceeds(all, SOCKET, TRANSACTION, 100.0)
        },
        reason: "the client refuses it: one request could outlast the transaction",
        fix: "set socket.timeout.ms to transaction.timeout.ms at most, or remove it",
    },
    Rule {
        client: LIBRDKAFKA,
        settings: &[SOCKET, REQUEST],
        breaks: |all| {
            let follows = is_transactional(all) && !all.is_set(SOCKET);
            !follows && exceeds(all, REQUEST, SOCKET, 0.0)
        },
        reason: "a request is taken for lost and sent again while the broker may still wait for its \
                 replicas",
        fix: "let socket.timeout.ms be request.timeout.ms, at least",
    },
    Rule {
        client: LIBRDKAFKA,
        settings: &[ONLY_ERRORS],
        breaks: |all| all.flag(ONLY_ERRORS) == Some(true),
        reason: "nobody is told that a record was written: a program that ends, or sends again what \
                 it has no answer for, loses or doubles records",
        fix: "remove it",
    },
    Rule {
        client: JAVA,
        settings: &[TWO_PHASE, TRANSACTION],
        breaks: |all| all.flag(TWO_PHASE) == Some(true) && all.is_set(TRANSACTION),
        reason: "the client refuses both together: such a transaction never ends by itself",
        fix: "remove transaction.timeout.ms, or transaction.two.phase.commit.enable",
    },
];

fn is_transactional(all: &Settings<'_>) -> bool {
    !all.value(TRANSACTIONAL).is_empty()
}

/// Whether idempotence is asked for. librdkafka takes a transaction's name for that.
fn is_on(all: &Settings<'_>) -> bool {
    all.flag(IDEMPOTENCE) == Some(true) || follows_transactional(all)
}

fn is_off(all: &Settings<'_>) -> bool {
    all.flag(IDEMPOTENCE) == Some(false) && !follows_transactional(all)
}

fn follows_transactional(all: &Settings<'_>) -> bool {
    all.client == Client::Librdkafka && !all.is_set(IDEMPOTENCE) && is_transactional(all)
}

/// The Java client gives a default up for what was set beside it.
fn is_default_alone(all: &Settings<'_>) -> bool {
    is_on(all) && all.client == Client::Java && !all.is_set(IDEMPOTENCE) && !is_transactional(all)
}

fn is_refused_with_idempotence(all: &Settings<'_>) -> bool {
    is_on(all) && !is_default_alone(all)
}

fn is_weak(all: &Settings<'_>) -> bool {
    !is_all(all.value(ACKS))
}

fn above(all: &Settings<'_>, name: &str, limit: f64) -> bool {
    all.number(name).is_some_and(|number| number > limit)
}

fn below(all: &Settings<'_>, name: &str, limit: f64) -> bool {
    all.number(name).is_some_and(|number| number < limit)
}

/// Whether one is larger than the other and a slack.
fn exceeds(all: &Settings<'_>, one: &str, other: &str, slack: f64) -> bool {
    all.number(other)
        .is_some_and(|other| above(all, one, other + slack))
}

/// Whether it ends before a request that has waited for its batch has had its time.
fn gives_up_early(all: &Settings<'_>, limit: &str) -> bool {
    let needed = all.number(LINGER).zip(all.number(REQUEST));
    needed.is_some_and(|(linger, request)| below(all, limit, linger + request))
}

fn delivers_within_transaction(all: &Settings<'_>) -> bool {
    is_transactional(all) && !all.is_set(DELIVERY)
}
