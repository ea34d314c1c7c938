//! `ship-process --idempotent`: the same work, and the lab's rewind adds nothing.

use std::{
    fs::{self, File},
    process::{Command, Stdio},
};

use crate::support::{
    Finished, Lab, Random, SHIP_PROCESS, assert_bytes, eventually, finish, read, run,
};

const ORDERS: &str = "order-1\norder-2\norder-3\norder-4\norder-5\n";

fn ship(lab: &Lab) -> Command {
    let mut command = lab.command(SHIP_PROCESS);
    command
        .arg("--idempotent")
        .env("SHIP_PROCESSED", lab.path("processed.txt"))
        .env_remove("SHIP_FIXED");
    command
}

fn fixed(lab: &Lab) -> Command {
    let mut command = ship(lab);
    command.env("SHIP_FIXED", "1");
    command
}

fn processed(lab: &Lab) -> Vec<u8> {
    read(lab.path("processed.txt"))
}

#[track_caller]
fn done(finished: &Finished) {
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
}

#[track_caller]
fn failed(finished: &Finished, named: &str) {
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains(named), "{finished:?}");
    assert!(!finished.stderr.contains("panicked"), "{finished:?}");
}

#[test]
fn after_the_crash_and_the_rewind_each_order_is_there_once() {
    let lab = Lab::new();
    failed(
        &run(&mut ship(&lab), "order-1\norder-2\norder-3\n"),
        "order-2",
    );
    assert_eq!(processed(&lab), b"order-1\n");
    for _ in 0..3 {
        done(&run(&mut fixed(&lab), ORDERS));
        assert_eq!(processed(&lab), ORDERS.as_bytes());
    }
    assert!(lab.path("processed.txt.store").is_dir());
}

#[test]
fn the_bug_is_still_there_until_order_2_was_processed() {
    let lab = Lab::new();
    for _ in 0..2 {
        failed(&run(&mut ship(&lab), ORDERS), "order-2");
        assert_eq!(processed(&lab), b"order-1\n");
    }
    done(&run(&mut fixed(&lab), "order-2\n"));
    done(&run(&mut ship(&lab), "order-2\norder-1\norder-2"));
    assert_eq!(processed(&lab), b"order-1\norder-2\n");
}

#[test]
fn copies_within_one_input_are_processed_once() {
    let lab = Lab::new();
    done(&run(&mut ship(&lab), "b\na\nb\n\n\na"));
    assert_eq!(processed(&lab), b"b\na\n\n");
}

#[test]
fn a_file_that_lacks_what_the_store_recorded_gets_it_at_the_next_start() {
    let lab = Lab::new();
    done(&run(&mut fixed(&lab), ORDERS));
    for length in (0..ORDERS.len()).rev() {
        // What a crash between the store and the file leaves.
        lab.write("processed.txt", &ORDERS[..length]);
        done(&run(&mut ship(&lab), "order-1\n"));
        assert_eq!(processed(&lab), ORDERS.as_bytes());
    }
}

#[test]
fn killed_at_any_moment_each_order_is_there_once_and_in_order() {
    let (mut lab, mut random) = (Lab::new(), Random(5));
    let distinct: Vec<u8> = (0..20_000)
        .flat_map(|number| format!("order-{number:060}\n").into_bytes())
        .collect();
    let input = [&distinct[..], &distinct[..]].concat();
    for round in 0..30 {
        if round % 5 == 0 {
            lab = Lab::new();
        }
        lab.write("input", &input);
        let mut child = ship(&lab)
            .stdin(File::open(lab.path("input")).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let log = lab.path("processed.txt.store/log/db");
        eventually("it is at work, or all is done", || {
            let begun = log.exists() && random.below(60) == 0;
            begun || child.try_wait().unwrap().is_some()
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(distinct.starts_with(&processed(&lab)));
        if round % 5 == 4 {
            done(&run(&mut ship(&lab), &input));
            assert_bytes(&processed(&lab), &distinct, "the processed file");
        }
    }
}

#[test]
fn a_file_with_orders_from_before_is_refused_and_taken_over_by_feeding_it() {
    let lab = Lab::new();
    lab.write("processed.txt", "order-1\norder-3\n");
    failed(&run(&mut ship(&lab), "order-4\n"), "feed it");
    assert_eq!(processed(&lab), b"order-1\norder-3\n");
    fs::rename(lab.path("processed.txt"), lab.path("moved")).unwrap();
    done(&run(&mut ship(&lab), read(lab.path("moved"))));
    done(&run(&mut ship(&lab), "order-1\norder-4\n"));
    assert_eq!(processed(&lab), b"order-1\norder-3\norder-4\n");
}

#[test]
fn the_state_directory_can_be_chosen_and_must_be_this_programs() {
    let lab = Lab::new();
    let mut command = lab.command(SHIP_PROCESS);
    command.env("SHIP_PROCESSED", lab.path("processed.txt"));
    done(&run(command.args(["--state", "chosen"]), "order-1\n"));
    assert!(lab.path("chosen").is_dir() && !lab.path("processed.txt.store").exists());
    let finished = run(lab.dedup().args(["--store=sled", "--seen=chosen"]), "a\n");
    failed(&finished, "ship-process");
    // Another state for the same file knows nothing of what is in it.
    failed(&run(&mut ship(&lab), "order-2\n"), "processed.txt");
    assert_eq!(processed(&lab), b"order-1\n");
}

#[test]
fn what_is_no_regular_file_is_refused() {
    let lab = Lab::new();
    let finished = run(ship(&lab).env("SHIP_PROCESSED", "/dev/null"), "order-1\n");
    failed(&finished, "/dev/null");
    assert!(!lab.path("/dev/null.store").exists());
}

#[test]
fn a_file_in_use_is_refused() {
    let lab = Lab::new();
    let mut first = ship(&lab).stdin(Stdio::piped()).spawn().unwrap();
    let stdin = first.stdin.take().unwrap();
    let stamp = lab.path("processed.txt.store/stamp");
    eventually("the first is at work", || stamp.exists());
    for state in ["processed.txt.store", "other.store"] {
        let finished = run(ship(&lab).args(["--state", state]), "order-1\n");
        failed(&finished, "in use");
    }
    drop(stdin);
    done(&finish(first));
}
