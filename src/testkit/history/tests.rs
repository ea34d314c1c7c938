//! A checker that finds nothing proves nothing: each kind of violation is planted once.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use super::{
    Collector, Effect, History, Positions, Reporter, Rules, Run, Summary, Violation, Violations,
};

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// Offset `at` of partition 0, with a key and a token of its own.
fn effect(at: usize) -> Effect {
    Effect {
        key: KEYS[at].to_owned(),
        partition: 0,
        offset: i64::try_from(at).unwrap(),
        token: format!("token of {}", KEYS[at]),
        in_doubt: false,
        attempt: 1,
    }
}

fn doubted(at: usize) -> Effect {
    Effect {
        in_doubt: true,
        ..effect(at)
    }
}

/// Has one effect happen, begun and ended.
fn happens(history: &mut History, run: Run, number: u64, effect: Effect) {
    history.began(run, number, effect);
    history.applied(run, number);
}

/// A run of a member in which the first so many keys take effect.
fn lived(history: &mut History, member: &str, process: u32, keys: usize) -> Run {
    let run = history.start(member, process);
    for at in 0..keys {
        happens(history, run, at as u64, effect(at));
    }
    run
}

fn positions(next: i64) -> Positions {
    Positions::from([(0, next)])
}

fn check(history: &History) -> Result<Summary, Violations> {
    history.check(KEYS, &Rules::default().in_flight_max(2))
}

fn only_violation(history: &History) -> Violation {
    let Violations(mut found) = check(history).unwrap_err();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn a_history_in_order_is_counted() {
    let mut history = History::default();
    let run = lived(&mut history, "m", 1, 3);
    history.began(run, 7, effect(3));
    history.failed(run, 7);
    happens(&mut history, run, 8, effect(3));
    let summary = check(&history).unwrap();
    assert_eq!((summary.keys, summary.applied, summary.failed), (4, 4, 1));
    assert_eq!(
        (summary.repeats(), summary.runs, summary.crashes),
        (0, 1, 0)
    );
    assert_eq!((history.effects(), history.effects_of("m")), (4, 4));
}

#[test]
fn a_key_that_never_took_effect_is_found() {
    let mut history = History::default();
    let run = lived(&mut history, "m", 1, 3);
    // Begun is not done, and neither is given up.
    history.began(run, 3, effect(3));
    assert!(matches!(only_violation(&history), Violation::Lost { key } if key == "d"));
    history.failed(run, 3);
    assert!(matches!(only_violation(&history), Violation::Lost { key } if key == "d"));
}

#[test]
fn a_key_that_nobody_sent_is_found() {
    let mut history = History::default();
    lived(&mut history, "m", 1, 4);
    let found = history.check(&KEYS[..3], &Rules::default()).unwrap_err().0;
    assert!(matches!(&found[..], [Violation::NeverSent { key }] if key == "d"));
}

#[test]
fn a_repeat_without_a_crash_is_found_within_a_run_and_after_an_orderly_end() {
    for again in [None, Some("m"), Some("n")] {
        let mut history = History::default();
        let mut run = lived(&mut history, "m", 1, 4);
        if let Some(member) = again {
            run = history.start(member, 2);
        }
        happens(&mut history, run, 9, doubted(3));
        let Violations(found) = check(&history).unwrap_err();
        let repeated = |violation: &Violation| matches!(violation, Violation::Repeated { before, .. } if before.key == "d");
        assert!(found.iter().any(repeated), "{again:?}: {found:?}");
    }
}

#[test]
fn after_a_crash_only_the_latest_effects_may_come_again() {
    for (at, is_allowed) in [(3, true), (2, true), (1, false), (0, false)] {
        let mut history = History::default();
        let run = lived(&mut history, "m", 1, 4);
        history.crashed(run, positions(0));
        let next = history.start("m", 2);
        happens(&mut history, next, 1, doubted(at));
        if is_allowed {
            let summary = check(&history).unwrap();
            assert_eq!((summary.repeats_own, summary.crashes), (1, 1));
        } else {
            let violation = only_violation(&history);
            let text = violation.to_string();
            assert!(matches!(violation, Violation::Repeated { .. }), "{text}");
            assert!(text.contains(&format!("offset {at}, ")), "{text}");
        }
    }
}

#[test]
fn each_repeat_needs_a_crash_of_its_own() {
    let mut history = History::default();
    let first = lived(&mut history, "m", 1, 4);
    history.crashed(first, positions(0));
    let second = history.start("m", 2);
    happens(&mut history, second, 1, doubted(3));
    let third = history.start("m", 3);
    happens(&mut history, third, 1, doubted(3));
    assert!(matches!(
        only_violation(&history),
        Violation::Repeated { .. }
    ));
    history.crashed(second, positions(0));
    assert_eq!(check(&history).unwrap().repeats_own, 2);
}

#[test]
fn a_repeat_of_the_own_store_that_is_not_in_doubt_is_found() {
    // Begun is enough: it may have happened.
    for is_applied in [true, false] {
        let mut history = History::default();
        let run = lived(&mut history, "m", 1, 3);
        history.began(run, 9, effect(3));
        if is_applied {
            history.applied(run, 9);
        }
        history.crashed(run, positions(0));
        let next = history.start("m", 2);
        happens(&mut history, next, 1, effect(3));
        assert!(matches!(
            only_violation(&history),
            Violation::Unannounced { effect, .. } if effect.key == "d"
        ));
    }
}

#[test]
fn another_store_may_repeat_only_what_the_group_had_not_committed_at_an_interruption() {
    for (committed, is_allowed) in [(3, true), (4, false)] {
        let mut history = History::default();
        let run = lived(&mut history, "m", 1, 4);
        history.crashed(run, positions(committed));
        let other = history.start("n", 2);
        happens(&mut history, other, 1, effect(3));
        match check(&history) {
            Ok(summary) => assert_eq!((summary.repeats_elsewhere, is_allowed), (1, true)),
            Err(_) => assert!(!is_allowed),
        }
    }
}

#[test]
fn a_member_that_stood_still_is_excused_until_it_is_in_order_again() {
    for (is_back, is_allowed) in [(false, true), (true, false)] {
        let mut history = History::default();
        let run = lived(&mut history, "m", 1, 3);
        history.interrupted(run, positions(3));
        let other = history.start("n", 2);
        happens(&mut history, other, 1, effect(3));
        if is_back {
            history.recovered(run);
        }
        // It did not know that the partition is the other's.
        happens(&mut history, run, 9, effect(3));
        match check(&history) {
            Ok(summary) => assert_eq!((summary.repeats_elsewhere, is_allowed), (1, true)),
            Err(_) => assert!(!is_allowed),
        }
    }
}

#[test]
fn standing_still_excuses_nothing_within_one_store() {
    let mut history = History::default();
    let run = lived(&mut history, "m", 1, 4);
    history.interrupted(run, positions(0));
    let next = history.start("m", 2);
    happens(&mut history, next, 1, doubted(3));
    assert!(matches!(
        only_violation(&history),
        Violation::Repeated { .. }
    ));
}

#[test]
fn tokens_that_change_and_tokens_that_are_shared_are_found() {
    let mut history = History::default();
    let run = lived(&mut history, "m", 1, 4);
    let token = "another".to_owned();
    history.began(run, 9, Effect { token, ..effect(3) });
    assert!(matches!(
        only_violation(&history),
        Violation::TokenChanged { key, .. } if key == "d"
    ));

    let mut history = History::default();
    let run = lived(&mut history, "m", 1, 3);
    let token = "token of a".to_owned();
    happens(&mut history, run, 9, Effect { token, ..effect(3) });
    assert!(matches!(
        only_violation(&history),
        Violation::TokenShared { keys, .. } if keys == ["a", "d"]
    ));
}

#[test]
fn a_key_in_two_hands_at_once_is_found() {
    let mut history = History::default();
    let run = lived(&mut history, "m", 1, 3);
    history.began(run, 8, effect(3));
    history.began(run, 9, effect(3));
    history.applied(run, 8);
    history.failed(run, 9);
    assert!(matches!(
        only_violation(&history),
        Violation::Overlapping { effect, .. } if effect.key == "d"
    ));
}

#[test]
fn going_back_in_a_partition_is_found_where_order_is_asked_for() {
    let mut history = History::default();
    let run = lived(&mut history, "m", 1, 2);
    for at in [3, 2] {
        happens(&mut history, run, at as u64, effect(at));
    }
    assert!(matches!(
        only_violation(&history),
        Violation::OutOfOrder { effect, after: 3, .. } if effect.key == "c"
    ));
    let unordered = Rules::default().in_order(false);
    history.check(KEYS, &unordered).unwrap();
}

#[test]
fn an_end_without_a_beginning_is_found() {
    let mut history = History::default();
    let run = lived(&mut history, "m", 1, 4);
    history.applied(run, 77);
    assert!(matches!(
        only_violation(&history),
        Violation::Unknown { number: 77, .. }
    ));
}

#[test]
fn what_members_report_is_what_is_checked() {
    let collector = Collector::start().unwrap();
    let reporter = Reporter::connect(collector.addr(), "m").unwrap();
    for at in 0..3 {
        reporter.begin(&effect(at)).unwrap().applied().unwrap();
    }
    drop(reporter.begin(&effect(3)).unwrap());
    assert_eq!((collector.effects(), collector.effects_of("n")), (3, 0));
    let open = reporter.begin(&effect(3)).unwrap();
    let other = Reporter::connect(collector.addr(), "n").unwrap();
    other.begin(&effect(3)).unwrap().applied().unwrap();
    std::mem::forget(open);
    let summary = check(&collector.history()).unwrap();
    assert_eq!((summary.failed, summary.cut_off, summary.runs), (1, 1, 2));
}

#[test]
fn a_crash_is_noted_behind_all_that_the_process_reported() {
    let collector = Collector::start().unwrap();
    let reporter = Reporter::connect(collector.addr(), "m").unwrap();
    for at in 0..4 {
        reporter.begin(&effect(at)).unwrap().applied().unwrap();
    }
    drop(reporter);
    collector.crashed(std::process::id(), positions(0)).unwrap();
    let unheard_of = 0;
    collector.crashed(unheard_of, positions(0)).unwrap();
    let reporter = Reporter::connect(collector.addr(), "m").unwrap();
    reporter.begin(&doubted(3)).unwrap().applied().unwrap();
    assert_eq!(check(&collector.history()).unwrap().repeats_own, 1);
}

#[test]
fn a_line_that_is_no_report_is_answered_with_the_reason_and_not_kept() {
    let collector = Collector::start().unwrap();
    for (line, reason) in [
        ("hello\n", "not a report"),
        ("{\"applied\":{\"number\":1}}\n", "before the start"),
    ] {
        let mut stream = TcpStream::connect(collector.addr()).unwrap();
        stream.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        let mut lines = BufReader::new(stream);
        lines.read_line(&mut answer).unwrap();
        assert!(answer.contains(reason), "{answer}");
        assert_eq!(lines.read_line(&mut answer).unwrap(), 0, "it is closed");
    }
    assert_eq!(collector.effects(), 0);
}
