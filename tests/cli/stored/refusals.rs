//! What is somebody else's is refused, left alone, and can be taken over.

use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::FileExt,
    process::Stdio,
};

use super::{dedup, feed, refused};
use crate::support::{DEADLINE, Lab, SHIP_PROCESS, eventually, finish, read, run, start};

#[test]
fn lines_of_somebody_else_are_refused_left_alone_and_taken_over_by_feeding_them() {
    let lab = Lab::new();
    feed(&lab, "a\nb\n");
    lab.write("processed-dedup.txt", "a\nb\ntheirs\na\n");
    let (out, store) = (lab.out(), lab.path("seen.store"));
    let names = [out.to_str().unwrap(), store.to_str().unwrap()];
    refused(&run(&mut dedup(&lab), "c\n"), &names);
    refused(
        &run(&mut dedup(&lab), "c\n"),
        &["13 bytes", "byte 4", "feed"],
    );
    assert_eq!(read(lab.out()), b"a\nb\ntheirs\na\n");
    // The way out that it names.
    fs::rename(lab.out(), lab.path("moved")).unwrap();
    feed(&lab, read(lab.path("moved")));
    feed(&lab, "c\n");
    assert_eq!(read(lab.out()), b"a\nb\ntheirs\nc\n");
}

#[test]
fn an_out_file_from_before_the_store_is_refused_and_taken_over_by_feeding_it() {
    let lab = Lab::new();
    lab.feed("a\nb\n");
    refused(&run(&mut dedup(&lab), "b\nc\n"), &["byte 0", "feed"]);
    assert_eq!(read(lab.out()), b"a\nb\n");
    fs::rename(lab.out(), lab.path("moved")).unwrap();
    feed(&lab, read(lab.path("moved")));
    feed(&lab, "b\nc\n");
    assert_eq!(read(lab.out()), b"a\nb\nc\n");
}

#[test]
fn an_out_file_with_other_bytes_at_its_end_is_refused_and_left_alone() {
    let lab = Lab::new();
    feed(&lab, "a\nb\nc\n");
    for changed in ["a\nB\nc\n", "a\nb\nC\n", "a\nb\nX", "x"] {
        lab.write("processed-dedup.txt", changed);
        refused(&run(&mut dedup(&lab), "d\n"), &["not what the store"]);
        assert_eq!(read(lab.out()), changed.as_bytes());
    }
    // Also within a line that was recorded in pieces.
    feed(&Lab::new(), "");
    fs::remove_file(lab.out()).unwrap();
    feed(&lab, "z".repeat(200_000));
    let out = File::options().write(true).open(lab.out()).unwrap();
    out.write_all_at(b"Z", 150_000).unwrap();
    refused(&run(&mut dedup(&lab), "d\n"), &["not what the store"]);
}

#[test]
fn somebody_who_writes_in_between_is_noticed_before_anything_is_written_behind_him() {
    let lab = Lab::new();
    let mut child = dedup(&lab)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"a\n").unwrap();
    eventually("the line is out", || read(lab.out()) == b"a\n");
    fs::write(lab.out(), "a\ntheirs\n").unwrap();
    stdin.write_all(b"b\n").unwrap();
    drop(stdin);
    refused(&finish(child), &["9 bytes", "byte 2"]);
    assert_eq!(read(lab.out()), b"a\ntheirs\n");
    fs::rename(lab.out(), lab.path("moved")).unwrap();
    feed(&lab, read(lab.path("moved")));
    assert_eq!(read(lab.out()), b"a\nb\ntheirs\n");
}

#[test]
fn a_store_of_another_program_is_refused_and_so_is_what_is_no_store() {
    let lab = Lab::new();
    let mut ship = lab.command(SHIP_PROCESS);
    ship.arg("--idempotent");
    ship.env("SHIP_PROCESSED", lab.path("seen"));
    assert_eq!(run(&mut ship, "order-1\n").code, Some(0));
    let foreign = lab.path("seen.store");
    assert!(foreign.is_dir());
    let names = [foreign.to_str().unwrap(), "ship-process", "dedup"];
    refused(&run(&mut dedup(&lab), "a\n"), &names);
    fs::create_dir(lab.path("full")).unwrap();
    lab.write("full/file", "");
    let finished = run(dedup(&lab).args(["--seen", "full"]), "a\n");
    refused(&finished, &["full", "directory of its own"]);
    assert!(!lab.out().exists());
}

#[test]
fn a_damaged_store_is_refused_with_the_way_out_and_the_out_file_left_alone() {
    let lab = Lab::new();
    feed(&lab, "a\nb\n");
    lab.write("seen.store/stamp", "nonsense\n");
    refused(&run(&mut dedup(&lab), "c\n"), &["stamp", "damaged", "feed"]);
    assert_eq!(read(lab.out()), b"a\nb\n");
}

#[test]
fn a_store_in_use_is_waited_for_as_long_as_asked() {
    let lab = Lab::new();
    let mut first = dedup(&lab).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = first.stdin.take().unwrap();
    stdin.write_all(b"a\n").unwrap();
    eventually("the line is out", || read(lab.out()) == b"a\n");
    let pid = first.id().to_string();
    // By the store, and by the out file.
    for (name, value) in [("DEDUP_OUT", "other.txt"), ("DEDUP_SEEN", "other.store")] {
        let finished = run(dedup(&lab).env(name, value), "b\n");
        refused(&finished, &["in use", &pid, "--wait SECONDS"]);
    }
    lab.write("input", "a\nb\n");
    let seconds = DEADLINE.as_secs().to_string();
    let wait = ["--wait", &seconds];
    let second = start(dedup(&lab).args(wait), lab.path("input"));
    // This one gets past the out file's lock and waits for the store's.
    lab.write("third.txt", "");
    let mut third = dedup(&lab);
    third.env("DEDUP_OUT", lab.path("third.txt"));
    let third = start(third.args(wait), lab.path("input"));
    let (descriptors, target) = (format!("/proc/{}/fd", third.id()), lab.path("third.txt"));
    eventually("it has its out file", || {
        let open = fs::read_dir(&descriptors).unwrap();
        open.flatten()
            .any(|open| fs::read_link(open.path()).is_ok_and(|path| path == target))
    });
    drop(stdin);
    assert_eq!(finish(first).code, Some(0));
    assert_eq!(finish(second).code, Some(0));
    assert_eq!(finish(third).code, Some(0));
    for out in [lab.out(), lab.path("third.txt")] {
        assert_eq!(read(out), b"a\nb\n");
    }
}
