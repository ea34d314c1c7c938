//! One member that is killed at any moment, again and again, while records flow.

use std::time::Duration;

use idempotent_consumer::testkit::history::Positions;

use crate::chance::Chance;
use crate::feed::Feed;
use crate::fleet::{Fleet, Work};
use crate::protocol::Protocol;
use crate::{admin, broker};

const PARTITIONS: usize = 2;
const KEYS_MAX: usize = 10_000_000;
const KILLS: usize = 100;
const ROUNDS: &str = "IDEMPOTENT_CONSUMER_BROKER_ROUNDS";

/// Kills of all these tests together.
fn kills() -> usize {
    std::env::var(ROUNDS).map_or(KILLS, |rounds| {
        rounds
            .parse()
            .unwrap_or_else(|_| panic!("{ROUNDS} is not a number: {rounds}"))
    })
}

/// Kills a lone member `percent` of a hundred times, each at a moment of its own: most at work,
/// some at their start.
fn killed_at_any_moment(protocol: Protocol, session: Duration, work: Work, percent: usize) {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic(
        &kafka,
        &format!("crash-loop-{}-{work:?}", protocol.name()),
        i32::try_from(PARTITIONS).unwrap(),
    );
    let mut chance = Chance::told(&topic);
    let fleet = Fleet::new(&kafka, &topic, &topic, protocol, session).working(work);
    let pause = Duration::from_millis(100);
    let feed = Feed::start(&kafka, &topic, PARTITIONS, KEYS_MAX, pause);
    for _ in 0..kills() * percent / 100 {
        let mut process = fleet.start("member");
        if !chance.one_in(6) {
            fleet.wait_for_more(&mut process, 1);
        }
        // The moment of the kill; nothing is waited for.
        std::thread::sleep(chance.time_below(Duration::from_millis(300)));
        process.assert_running();
        // Nobody else is there who could repeat anything.
        fleet.kill(process, Positions::new());
    }
    let mut process = fleet.start("member");
    fleet.wait_for_more(&mut process, 1);
    let keys = feed.stop();
    fleet.wait_caught_up();
    process.stop();
    let summary = fleet.check(&keys);
    assert!(
        summary.crashes > 0 || kills() * percent < 100,
        "nothing was killed at work"
    );
}

#[test]
fn a_static_member_killed_at_any_moment_repeats_only_what_was_in_flight() {
    killed_at_any_moment(Protocol::Static, Duration::from_secs(6), Work::InTurn, 30);
}

#[test]
fn a_static_member_killed_with_gaps_in_its_work_repeats_only_what_was_in_flight() {
    killed_at_any_moment(Protocol::Static, Duration::from_secs(6), Work::AtOnce, 30);
}

#[test]
fn a_member_killed_at_any_moment_repeats_only_what_was_in_flight() {
    killed_at_any_moment(
        Protocol::Range,
        Duration::from_secs(1),
        Work::Alternating,
        25,
    );
}

#[test]
fn a_member_of_the_consumer_protocol_killed_at_any_moment_repeats_only_what_was_in_flight() {
    killed_at_any_moment(
        Protocol::Consumer,
        Duration::from_millis(1_500),
        Work::AtOnce,
        15,
    );
}
