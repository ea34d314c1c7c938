use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::*;
use crate::outbox::patience::Closing;

type Step = (&'static str, Fault);

/// Steps that fail as they are told, and what was done.
struct Scripted {
    faults: RefCell<VecDeque<Step>>,
    done: RefCell<Vec<&'static str>>,
    standings: RefCell<VecDeque<Standing>>,
}

impl Scripted {
    fn new(faults: impl IntoIterator<Item = Step>) -> Self {
        Self {
            faults: RefCell::new(faults.into_iter().collect()),
            done: RefCell::default(),
            standings: RefCell::default(),
        }
    }

    fn step(&self, name: &'static str) -> Result<(), Fault> {
        self.done.borrow_mut().push(name);
        let mut faults = self.faults.borrow_mut();
        match faults.front() {
            Some((at, _)) if *at == name => {
                std::thread::sleep(Duration::from_millis(1));
                Err(faults.pop_front().unwrap().1)
            }
            _ => Ok(()),
        }
    }

    fn done(&self) -> String {
        self.done.borrow().join(" ")
    }
}

impl Wire for Scripted {
    type Member = ();

    fn member(&self) -> Option<()> {
        self.done.borrow_mut().push("member");
        Some(())
    }

    fn standing(&self, _: &TopicPartition) -> Standing {
        let next = self.standings.borrow_mut().pop_front();
        next.unwrap_or(Standing::Held)
    }

    fn begin(&self) -> Result<(), Fault> {
        self.step("begin")
    }

    fn send(&self, _: &Outgoing, _: &Patience<'_>) -> Result<(), Fault> {
        self.step("send")
    }

    fn send_offsets(&self, _: &[(TopicPartition, NextOffset)], (): &()) -> Result<(), Fault> {
        self.step("offsets")
    }

    fn confirmed(&self, _: &Patience<'_>) -> Result<(), Fault> {
        self.step("confirmed")
    }

    fn commit(&self) -> Result<(), Fault> {
        self.step("commit")
    }

    fn abort(&self) -> Result<(), Fault> {
        self.step("abort")
    }
}

const LIMIT: Duration = Duration::from_millis(300);

fn run_for(wire: &Scripted, limit: Duration) -> Result<Ended, Failure> {
    let record = Outgoing::to("out");
    let load = Load {
        records: vec![&record],
        positions: vec![(TopicPartition::new("in", 0), NextOffset::after(6))],
    };
    let closing = Closing::default();
    commit(wire, &load, &mut Patience::new(&closing, limit))
}

fn run(faults: impl IntoIterator<Item = Step>) -> (Result<Ended, Failure>, String) {
    let wire = Scripted::new(faults);
    let ended = run_for(&wire, Duration::from_secs(60));
    (ended, wire.done())
}

fn again() -> Fault {
    Fault::Again("not yet".into())
}

fn void() -> Fault {
    Fault::Abort("void".into())
}

const ROUND: &str = "member begin send offsets confirmed commit";

#[test]
fn a_step_that_fails_before_the_commit_voids_the_transaction_and_all_is_sent_again() {
    assert_eq!(run([]).1, ROUND);
    for step in ["send", "offsets", "confirmed"] {
        let faults: [fn() -> Fault; 3] = [void, again, || Fault::Stale("later".into())];
        for fault in faults {
            let (ended, done) = run([(step, fault())]);
            assert!(matches!(ended, Ok(Ended::Committed)), "{step}: {ended:?}");
            let (first, _) = ROUND.split_once(step).unwrap();
            assert_eq!(done, format!("{first}{step} abort {ROUND}"));
        }
    }
}

#[test]
fn a_commit_that_was_refused_is_aborted_and_all_is_sent_again() {
    let (ended, done) = run([("commit", void())]);
    assert!(matches!(ended, Ok(Ended::Committed)), "{ended:?}");
    assert_eq!(done, format!("{ROUND} abort {ROUND}"));
}

#[test]
fn a_commit_without_an_answer_is_asked_for_again_and_never_aborted() {
    let (ended, done) = run([("commit", again()), ("commit", again())]);
    assert!(matches!(ended, Ok(Ended::Committed)), "{ended:?}");
    assert_eq!(done, format!("{ROUND} commit commit"));

    let wire = Scripted::new((0..10_000).map(|_| ("commit", again())));
    let ended = run_for(&wire, LIMIT);
    assert!(matches!(ended, Err(Failure::Unknown(_))), "{ended:?}");
    assert!(!wire.done().contains("abort"));
}

#[test]
fn whether_a_commit_was_carried_out_is_unknown_where_the_client_died_of_it_or_of_its_abort() {
    let dead = || Fault::Fatal("dead".into());
    let (ended, _) = run([("commit", dead())]);
    assert!(matches!(ended, Err(Failure::Unknown(_))), "{ended:?}");
    let (ended, _) = run([("commit", void()), ("abort", dead())]);
    assert!(matches!(ended, Err(Failure::Unknown(_))), "{ended:?}");
    let (ended, _) = run([("confirmed", void()), ("abort", dead())]);
    assert!(matches!(ended, Err(Failure::Fatal(_))), "{ended:?}");
}

#[test]
fn a_fence_ends_it_and_says_whether_something_may_have_been_committed() {
    let fence = || Fault::Fenced("other".into());
    for (faults, expected) in [
        (vec![("confirmed", fence())], false),
        (vec![("offsets", void()), ("abort", fence())], false),
        (vec![("commit", fence())], true),
        (vec![("commit", void()), ("abort", fence())], true),
    ] {
        let (ended, _) = run(faults);
        let Err(Failure::Fenced { asked, .. }) = ended else {
            panic!("{ended:?}")
        };
        assert_eq!(asked, expected);
    }
}

#[test]
fn what_can_never_be_sent_is_aborted_once_and_told() {
    let error = OutboxError::Record {
        topic: "out".into(),
        message: "too large".into(),
        remedy: "send less",
    };
    let (ended, done) = run([("confirmed", Fault::Never(error))]);
    assert!(matches!(ended, Err(Failure::Never(_))), "{ended:?}");
    assert_eq!(done, "member begin send offsets confirmed abort");
}

#[test]
fn attempts_end_with_the_patience_and_at_once_with_the_consumer() {
    let wire = Scripted::new((0..10_000).map(|_| ("offsets", void())));
    let ended = run_for(&wire, LIMIT);
    assert!(matches!(ended, Err(Failure::Patience(_))), "{ended:?}");

    let closing = Closing::default();
    closing.close(Instant::now());
    let load = Load {
        records: Vec::new(),
        positions: Vec::new(),
    };
    let wire = Scripted::new([("offsets", void())]);
    let mut patience = Patience::new(&closing, Duration::from_secs(60));
    let ended = commit(&wire, &load, &mut patience);
    assert!(matches!(ended, Err(Failure::Patience(_))), "{ended:?}");
}

#[test]
fn nothing_is_sent_for_a_partition_that_is_gone_or_may_be() {
    let wire = Scripted::new([("offsets", Fault::Stale("new generation".into()))]);
    wire.standings
        .borrow_mut()
        .extend([Standing::Held, Standing::Gone]);
    let ended = run_for(&wire, Duration::from_secs(60));
    assert!(matches!(ended, Ok(Ended::NotOurs(0))), "{ended:?}");
    assert_eq!(wire.done(), "member begin send offsets abort member");

    let wire = Scripted::new([]);
    wire.standings
        .borrow_mut()
        .extend([Standing::Unclear, Standing::Unclear, Standing::Gone]);
    let ended = run_for(&wire, Duration::from_secs(60));
    assert!(matches!(ended, Ok(Ended::NotOurs(0))), "{ended:?}");
    assert_eq!(wire.done(), "member member member");

    let wire = Scripted::new([]);
    wire.standings.borrow_mut().push_back(Standing::Unclear);
    let ended = run_for(&wire, Duration::from_secs(60));
    assert!(matches!(ended, Ok(Ended::Committed)), "{ended:?}");
}

#[test]
fn an_expelled_member_sends_nothing_again() {
    let (ended, done) = run([("offsets", Fault::Expelled("who?".into()))]);
    assert!(matches!(ended, Ok(Ended::NotOurs(0))), "{ended:?}");
    assert_eq!(done, "member begin send offsets abort");
}
