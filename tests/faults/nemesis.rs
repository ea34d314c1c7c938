//! Everything that can go wrong, at random and at once, while records flow.
//!
//! Two groups read one topic. One is a lone member: whatever happens to it, its own store is
//! enough to repeat nothing but what was in flight at a crash. The other has three members, which
//! take over from each other: they may repeat as well what the group had not committed when one
//! was cut off.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use idempotent_consumer::testkit::FaultProxy;
use idempotent_consumer::testkit::history::Positions;

use crate::chance::Chance;
use crate::feed::Feed;
use crate::fleet::{Fleet, Work};
use crate::process::Process;
use crate::protocol::Protocol;
use crate::support::kafka::Kafka;
use crate::weather::Weather;
use crate::{admin, broker};

const SECONDS: &str = "IDEMPOTENT_CONSUMER_NEMESIS_SECONDS";
const PARTITIONS: usize = 4;
const KEYS_MAX: usize = 100_000_000;
const SESSION: Duration = Duration::from_secs(3);
/// The longest time between two blows.
const LULL_MAX: Duration = Duration::from_millis(1_500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    Kill,
    Freeze,
    FullDisk,
    OrderlyRestart,
}

const BLOWS: &[Blow] = &[
    Blow::Kill,
    Blow::Freeze,
    Blow::FullDisk,
    Blow::OrderlyRestart,
];

struct Member {
    fleet: usize,
    process: Process,
    /// Its disk is full: it will end by itself.
    is_doomed: bool,
}

struct Nemesis<'a> {
    kafka: &'a Kafka,
    proxy: &'a FaultProxy,
    fleets: [Fleet<'a>; 2],
    members: Vec<Member>,
    chance: Chance,
    counts: BTreeMap<String, usize>,
    start: Instant,
}

impl Drop for Nemesis<'_> {
    fn drop(&mut self) {
        // A failed test leaves the broker to the others.
        if std::thread::panicking() && self.kafka.pid().is_none() {
            self.kafka.resume();
        }
    }
}

impl Nemesis<'_> {
    /// Some weather, with some blows in it, and then the calm in which all find together again.
    fn storm(&mut self, weather: Weather) {
        self.tell(&format!("{weather:?}"), "");
        // Read while the broker can be asked.
        let positions = self.fleets.each_ref().map(Fleet::positions);
        let rough = weather != Weather::Calm;
        if rough {
            for member in &self.members {
                self.interrupt(member, &positions);
            }
        }
        weather.begin(self.kafka, self.proxy, &mut self.chance);
        for _ in 0..=self.chance.below(2) {
            // How long the weather lasts; nothing is waited for.
            std::thread::sleep(self.chance.time_below(LULL_MAX));
            self.revive();
            let at = self.chance.below(self.members.len());
            let blow = *self.chance.pick(BLOWS);
            self.strike(at, blow, &positions, rough);
        }
        weather.end(self.kafka, self.proxy);
        self.settle(&positions);
    }

    fn tell(&mut self, name: &str, whom: &str) {
        println!("{:7.1?} {name} {whom}", self.start.elapsed());
        *self.counts.entry(name.to_owned()).or_default() += 1;
    }

    fn interrupt(&self, member: &Member, positions: &[Positions; 2]) {
        let collector = &self.fleets[member.fleet].collector;
        collector.interrupted(member.process.id(), positions[member.fleet].clone());
    }

    fn strike(&mut self, at: usize, blow: Blow, positions: &[Positions; 2], rough: bool) {
        let member = &mut self.members[at];
        if member.is_doomed {
            return;
        }
        member.process.assert_running();
        let name = member.process.name.clone();
        self.tell(&format!("{blow:?}"), &name);
        let member = &mut self.members[at];
        match blow {
            Blow::Freeze => {
                self.interrupt(&self.members[at], positions);
                let process = &self.members[at].process;
                process.signal("STOP");
                // How long it is frozen; nothing is waited for.
                std::thread::sleep(SESSION + self.chance.time_below(SESSION / 2));
                process.signal("CONT");
            }
            Blow::FullDisk => {
                member.process.fill_disk();
                member.is_doomed = true;
            }
            Blow::Kill | Blow::OrderlyRestart => {
                let member = self.members.remove(at);
                let fleet = member.fleet;
                if blow == Blow::Kill {
                    self.fleets[fleet].kill(member.process, positions[fleet].clone());
                } else if rough {
                    member.process.stop_cut_off();
                } else {
                    member.process.stop();
                }
                self.start(fleet, &name);
                if rough {
                    self.interrupt(&self.members[self.members.len() - 1], positions);
                }
            }
        }
    }

    fn start(&mut self, fleet: usize, name: &str) {
        let process = self.fleets[fleet].start(name);
        broker::wait_for("the first report of a member", || {
            self.fleets[fleet].collector.has_started(process.id())
        });
        self.members.push(Member {
            fleet,
            process,
            is_doomed: false,
        });
    }

    /// Waits until every member is one in order: in its group, with no doubt about what is whose.
    fn settle(&mut self, positions: &[Positions; 2]) {
        while let Some(at) = self.members.iter().position(|member| member.is_doomed) {
            let mut member = self.members.remove(at);
            let status = member.process.end();
            assert!(!status.success(), "a full disk ended it with {status}");
            let (fleet, name) = (member.fleet, member.process.name.clone());
            let crashed = positions[fleet].clone();
            let collector = &self.fleets[fleet].collector;
            collector.crashed(member.process.id(), crashed).unwrap();
            self.start(fleet, &name);
        }
        for fleet in 0..self.fleets.len() {
            self.wait_complete(fleet);
            // Who was thought dead has asked the broker meanwhile: it asks five times a second.
            let fleet = &self.fleets[fleet];
            fleet.wait_passed(&fleet.ends());
        }
        for member in &self.members {
            let collector = &self.fleets[member.fleet].collector;
            collector.recovered(member.process.id());
        }
    }

    /// Starts those again that could not reach the broker: the library leaves that to whoever runs it.
    fn revive(&mut self) {
        let ended = |member: &mut Member| !member.is_doomed && member.process.was_cut_off();
        while let Some(at) = self.members.iter_mut().position(ended) {
            let member = self.members.remove(at);
            self.start(member.fleet, &member.process.name);
        }
    }

    fn wait_complete(&mut self, fleet: usize) {
        let end = Instant::now() + broker::DEADLINE;
        loop {
            self.revive();
            let of_fleet = |member: &&Member| member.fleet == fleet;
            let wanted = self.members.iter().filter(of_fleet).count();
            let state = self.fleets[fleet].state();
            if state == Some(("Stable".to_owned(), wanted)) {
                return;
            }
            let said = || self.members.iter().map(|member| member.process.said());
            assert!(
                Instant::now() < end,
                "group {fleet}, to have {wanted} members, is {state:?}\n{}",
                said().collect::<Vec<_>>().join("\n\n")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn seconds() -> u64 {
    std::env::var(SECONDS).map_or(120, |seconds| {
        seconds
            .parse()
            .unwrap_or_else(|_| panic!("{SECONDS} is not a number: {seconds}"))
    })
}

#[test]
fn no_fault_and_no_mix_of_faults_loses_a_key_or_repeats_one_that_was_not_in_flight() {
    let Some(kafka) = broker::alone() else { return };
    let Some((_turn, proxy)) = broker::proxy(&kafka) else {
        return;
    };
    let topic = admin::topic(&kafka, "nemesis", i32::try_from(PARTITIONS).unwrap());
    let fleet = |name: &str, protocol, work| {
        let group = format!("{topic}-{name}");
        Fleet::new(&kafka, &topic, &group, protocol, SESSION)
            .behind(proxy.local_addr())
            .working(work)
    };
    let mut nemesis = Nemesis {
        kafka: &kafka,
        proxy: &proxy,
        fleets: [
            fleet("lone", Protocol::Range, Work::Alternating),
            fleet("three", Protocol::CooperativeSticky, Work::InTurn),
        ],
        members: Vec::new(),
        chance: Chance::told(&topic),
        counts: BTreeMap::new(),
        start: Instant::now(),
    };
    let pause = Duration::from_millis(100);
    let feed = Feed::start(&kafka, &topic, PARTITIONS, KEYS_MAX, pause);
    for (fleet, name) in [(0, "lone"), (1, "a"), (1, "b"), (1, "c")] {
        nemesis.start(fleet, name);
    }
    nemesis.settle(&[Positions::new(), Positions::new()]);
    let end = Instant::now() + Duration::from_secs(seconds());
    while Instant::now() < end {
        // Each kind comes before any comes again.
        for weather in nemesis.chance.shuffled(Weather::ALL) {
            if Instant::now() < end {
                nemesis.storm(weather);
            }
        }
    }
    let keys = feed.stop();
    for fleet in &nemesis.fleets {
        fleet.wait_caught_up();
    }
    for member in std::mem::take(&mut nemesis.members) {
        member.process.stop();
    }
    println!("{:?}", nemesis.counts);
    for fleet in &nemesis.fleets {
        fleet.check(&keys);
    }
}
