//! Members that are killed at any moment, again and again, while records flow.

use std::time::Duration;

use idempotent_consumer::testkit::EmbeddedBroker;

use crate::chance::Chance;
use crate::child::Process;
use crate::database::{Database, wait_for};
use crate::member::{broker, numbered, produce};
use crate::postgres::Postgres;
use crate::shared;

const ROUNDS: &str = "IDEMPOTENT_CONSUMER_POSTGRES_ROUNDS";
/// Kills of all these tests together.
const KILLS: usize = 100;
const PARTITIONS: usize = 2;
/// New in each round; every fifth is sent again, to the other partition.
const KEYS: usize = 150;
/// Beside each other in each of two tests.
const GROUPS: usize = 5;

fn kills() -> usize {
    std::env::var(ROUNDS).map_or(KILLS, |rounds| {
        rounds
            .parse()
            .unwrap_or_else(|_| panic!("{ROUNDS} is not a number: {rounds}"))
    })
}

fn feed(broker: &EmbeddedBroker, new: &[String]) {
    for partition in 0..PARTITIONS {
        let here = new.iter().skip(partition).step_by(PARTITIONS);
        let again = new.iter().skip(1 - partition).step_by(5 * PARTITIONS);
        let all: Vec<_> = here.chain(again).collect();
        produce(broker, i32::try_from(partition).unwrap(), &all);
    }
}

/// Several such groups beside each other: most of a round is waiting for the group to notice.
fn killed_at_any_moment(test: &str, members: usize) {
    let Some(server) = shared::server() else {
        return;
    };
    std::thread::scope(|scope| {
        for group in 0..GROUPS {
            let server = &server;
            scope.spawn(move || kill_again_and_again(&format!("{test}, {group}"), server, members));
        }
    });
}

/// Kills one of the members, each time at a moment of its own: most at work, some at their start.
/// Another takes its place.
fn kill_again_and_again(test: &str, server: &Postgres, members: usize) {
    let mut chance = Chance::told(test);
    let database = Database::new(server);
    let broker = broker(i32::try_from(PARTITIONS).unwrap());
    let start = || Process::start(broker.bootstrap_servers(), &database.config);
    let mut alive: Vec<_> = (0..members).map(|_| start()).collect();
    let (mut keys, mut crashed) = (Vec::new(), Vec::new());
    for round in 0..kills().div_ceil(2 * GROUPS) {
        let new = numbered(round * KEYS..(round + 1) * KEYS);
        feed(&broker, &new);
        keys.extend(new);
        if !chance.one_in(6) {
            let before = database.effects();
            wait_for("an effect", || {
                for process in &mut alive {
                    process.assert_running();
                }
                database.effects() > before
            });
        }
        // The moment of the kill; nothing is waited for.
        std::thread::sleep(chance.time_below(Duration::from_millis(150)));
        let mut process = alive.swap_remove(chance.below(members));
        process.assert_running();
        crashed.push(process.id());
        process.kill();
        alive.push(start());
    }
    wait_for("all effects", || {
        for process in &mut alive {
            process.assert_running();
        }
        database.effects() >= keys.len()
    });
    for process in alive {
        process.stop();
    }
    let summary = database.assert_each_once(&keys, &crashed, members == 1);
    println!("{test}: {summary}");
    assert!(
        summary.crashes > 0 || kills() < KILLS,
        "nothing was killed at work"
    );
}

#[test]
fn a_member_killed_at_any_moment_loses_and_repeats_nothing() {
    killed_at_any_moment("one", 1);
}

#[test]
fn one_of_two_members_killed_at_any_moment_loses_and_repeats_nothing() {
    killed_at_any_moment("one of two", 2);
}
