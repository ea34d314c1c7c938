//! Three processes share a topic, each with a store of its own, and are restarted in turn while
//! records flow.

use std::time::Duration;

use idempotent_consumer::testkit::history::Summary;

use crate::chance::Chance;
use crate::feed::Feed;
use crate::fleet::Fleet;
use crate::process::Process;
use crate::protocol::Protocol;
use crate::{admin, broker};

const NAMES: [&str; 3] = ["a", "b", "c"];
const PARTITIONS: usize = 4;
const KEYS_MAX: usize = 10_000_000;
/// So many effects show that a member works.
const AT_WORK: usize = 20;

/// So long that a loaded machine ends no session.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_secs(3);

/// Has each member restarted once by `restart`, which also gets the others, and checks the end.
fn restarted_in_turn(
    idea: &str,
    protocol: Protocol,
    session: Duration,
    restart: impl Fn(&Fleet<'_>, Process, &mut [Process]) -> Process,
) -> Option<Summary> {
    let kafka = broker::shared()?;
    let idea = format!("{idea}-{}", protocol.name());
    let topic = admin::topic(&kafka, &idea, i32::try_from(PARTITIONS).unwrap());
    let fleet = Fleet::new(&kafka, &topic, &topic, protocol, session);
    let pause = Duration::from_millis(80);
    let feed = Feed::start(&kafka, &topic, PARTITIONS, KEYS_MAX, pause);
    let mut members: Vec<_> = NAMES.iter().map(|name| fleet.start(name)).collect();
    all_work(&fleet, &mut members);
    for _ in NAMES {
        let oldest = members.remove(0);
        let restarted = restart(&fleet, oldest, &mut members);
        members.push(restarted);
        all_work(&fleet, &mut members);
    }
    let keys = feed.stop();
    fleet.wait_caught_up();
    for member in members {
        member.stop();
    }
    Some(fleet.check(&keys))
}

fn all_work(fleet: &Fleet<'_>, members: &mut [Process]) {
    for member in members {
        fleet.wait_for_more(member, AT_WORK);
    }
}

fn stopped_in_order(protocol: Protocol) {
    let restart = |fleet: &Fleet<'_>, member: Process, others: &mut [Process]| {
        let name = member.name.clone();
        member.stop();
        all_work(fleet, others);
        fleet.start(&name)
    };
    if let Some(summary) = restarted_in_turn("rolling", protocol, LONG, restart) {
        assert_eq!((summary.repeats(), summary.crashes), (0, 0));
    }
}

/// The check knows what the group had committed when each died: nothing below comes again.
fn killed(protocol: Protocol) {
    let chance = std::cell::RefCell::new(Chance::told(protocol.name()));
    let restart = |fleet: &Fleet<'_>, member: Process, others: &mut [Process]| {
        let name = member.name.clone();
        fleet.kill(member, fleet.positions());
        // Either the others take over first, or its own store is there before its session ends.
        if chance.borrow_mut().one_in(2) {
            fleet.wait_passed(&fleet.ends());
        }
        all_work(fleet, others);
        fleet.start(&name)
    };
    if let Some(summary) = restarted_in_turn("killed", protocol, SHORT, restart) {
        assert_eq!(summary.crashes, NAMES.len());
    }
}

#[test]
fn rolling_restarts_in_order_lose_and_repeat_nothing_on_range() {
    stopped_in_order(Protocol::Range);
}

#[test]
fn rolling_restarts_in_order_lose_and_repeat_nothing_on_cooperative_sticky() {
    stopped_in_order(Protocol::CooperativeSticky);
}

#[test]
fn rolling_restarts_in_order_lose_and_repeat_nothing_with_static_members() {
    stopped_in_order(Protocol::Static);
}

#[test]
fn rolling_restarts_in_order_lose_and_repeat_nothing_on_the_consumer_protocol() {
    stopped_in_order(Protocol::Consumer);
}

#[test]
fn kills_repeat_only_what_was_in_flight_on_range() {
    killed(Protocol::Range);
}

#[test]
fn kills_repeat_only_what_was_in_flight_on_cooperative_sticky() {
    killed(Protocol::CooperativeSticky);
}

#[test]
fn kills_repeat_only_what_was_in_flight_with_static_members() {
    killed(Protocol::Static);
}

#[test]
fn kills_repeat_only_what_was_in_flight_on_the_consumer_protocol() {
    killed(Protocol::Consumer);
}
