//! The members of a group, and what they did.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Duration;

use idempotent_consumer::testkit::history::{Collector, Positions, Rules, Summary};
use tempfile::TempDir;

use crate::broker;
use crate::member::Orders;
use crate::process::Process;
use crate::protocol::Protocol;
use crate::support::kafka::Kafka;

/// Effects of a partition that a crash may leave without marks: few, so that the check is sharp.
pub(crate) const IN_FLIGHT_MAX: usize = 60;
const FAILING_ONE_IN: u64 = 300;

/// How the records of a partition are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    InTurn,
    /// `Ordering::Key`, and work that ends in any order.
    AtOnce,
    /// Each start has the other of these.
    Alternating,
}

pub(crate) struct Fleet<'a> {
    kafka: &'a Kafka,
    topic: String,
    group: String,
    protocol: Protocol,
    session: Duration,
    work: Work,
    /// Where members find the broker.
    bootstrap: String,
    dir: TempDir,
    pub(crate) collector: Collector,
    started: Cell<u64>,
}

impl<'a> Fleet<'a> {
    pub(crate) fn new(
        kafka: &'a Kafka,
        topic: &str,
        group: &str,
        protocol: Protocol,
        session: Duration,
    ) -> Self {
        protocol.prepare(kafka, group, session);
        Self {
            kafka,
            topic: topic.to_owned(),
            group: group.to_owned(),
            protocol,
            session,
            work: Work::InTurn,
            bootstrap: kafka.bootstrap().to_owned(),
            dir: tempfile::tempdir().unwrap(),
            collector: Collector::start().unwrap(),
            started: Cell::new(0),
        }
    }

    /// The same with its members behind a proxy.
    pub(crate) fn behind(self, proxy: SocketAddr) -> Self {
        let bootstrap = proxy.to_string();
        Self { bootstrap, ..self }
    }

    pub(crate) fn working(self, work: Work) -> Self {
        Self { work, ..self }
    }

    pub(crate) fn start(&self, name: &str) -> Process {
        let mut config = self.protocol.config(name, self.session);
        for (key, value) in [
            ("bootstrap.servers", self.bootstrap.as_str()),
            ("group.id", &self.group),
            ("client.id", name),
            ("socket.timeout.ms", "1500"),
            ("reconnect.backoff.max.ms", "300"),
            // Many small answers: what is in flight at a kill differs each time.
            ("fetch.message.max.bytes", "4000"),
        ] {
            config.insert(key.to_owned(), value.to_owned());
        }
        self.started.set(self.started.get() + 1);
        let orders = Orders {
            name: name.to_owned(),
            store: self.dir.path().join(name),
            collector: self.collector.addr(),
            topic: self.topic.clone(),
            config,
            in_flight_max: IN_FLIGHT_MAX,
            at_once: match self.work {
                Work::InTurn => false,
                Work::AtOnce => true,
                Work::Alternating => self.started.get() % 2 == 0,
            },
            failing_one_in: FAILING_ONE_IN,
            seed: self.started.get(),
        };
        Process::start(&orders, &self.dir.path().join(format!("{name}.log")))
    }

    /// What the group has committed by now.
    pub(crate) fn positions(&self) -> Positions {
        let committed = broker::committed(self.kafka, &self.group, &self.topic);
        let numbered = (0..).zip(committed);
        numbered
            .filter_map(|(partition, next)| Some((partition, next?)))
            .collect()
    }

    /// SIGKILL. `positions` were committed before.
    pub(crate) fn kill(&self, mut process: Process, positions: Positions) {
        process.kill();
        self.collector.crashed(process.id(), positions).unwrap();
    }

    /// Waits until a member has done so much more.
    pub(crate) fn wait_for_more(&self, process: &mut Process, effects: usize) {
        let wanted = self.collector.effects_of(&process.name) + effects;
        let what = format!("{effects} more effects of {}", process.name);
        broker::wait_for(&what, || {
            process.assert_running();
            self.collector.effects_of(&process.name) >= wanted
        });
    }

    /// Where the partitions end by now.
    pub(crate) fn ends(&self) -> Positions {
        (0..).zip(self.kafka.end_offsets(&self.topic)).collect()
    }

    /// Waits until the group has committed up to these positions.
    pub(crate) fn wait_passed(&self, ends: &Positions) {
        broker::wait_for("the group to have passed what was there", || {
            let positions = self.positions();
            let passed = |(partition, end): (&i32, &i64)| {
                positions.get(partition).copied().unwrap_or(0) >= *end
            };
            ends.iter().all(passed)
        });
    }

    /// The group's state and the number of its members, as the broker has them.
    pub(crate) fn state(&self) -> Option<(String, usize)> {
        broker::group_state(self.kafka, &self.group)
    }

    pub(crate) fn wait_caught_up(&self) {
        broker::wait_caught_up(self.kafka, &self.group, &self.topic);
    }

    /// Looks at everything that happened.
    pub(crate) fn check(&self, keys: &[String]) -> Summary {
        let rules = Rules::default()
            .in_flight_max(IN_FLIGHT_MAX)
            .in_order(self.work == Work::InTurn);
        let checked = self.collector.history().check(keys, &rules);
        let summary = checked.unwrap_or_else(|violations| panic!("{}: {violations}", self.group));
        println!("{}: {summary}", self.group);
        summary
    }
}
