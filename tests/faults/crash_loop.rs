//! One member that is killed at any moment, again and again, while records flow.

use std::time::Duration;

use crate::chance::Chance;
use crate::feed::Feed;
use crate::fleet::Fleet;
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
fn killed_at_any_moment(protocol: Protocol, session: Duration, percent: usize) {
    let Some(kafka) = broker::shared() else {
        return;
    };
    let topic = admin::topic(
        &kafka,
        &format!("crash-loop-{}", protocol.name()),
        i32::try_from(PARTITIONS).unwrap(),
    );
    let mut chance = Chance::told(&topic);
    let fleet = Fleet::new(&kafka, &topic, &topic, protocol, session);
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
        fleet.kill(process, Default::default());
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
fn each_key_takes_effect_once_and_again_only_if_in_flight_when_a_static_member_is_killed() {
    killed_at_any_moment(Protocol::Static, Duration::from_secs(6), 60);
}

#[test]
fn each_key_takes_effect_once_and_again_only_if_in_flight_when_a_member_is_killed() {
    killed_at_any_moment(Protocol::Range, Duration::from_secs(1), 25);
}

#[test]
fn each_key_takes_effect_once_and_again_only_if_in_flight_when_a_consumer_protocol_member_is_killed()
 {
    killed_at_any_moment(Protocol::Consumer, Duration::from_millis(1_500), 15);
}
