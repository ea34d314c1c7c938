//! Slow input, and two programs at a time.

use std::{
    fs,
    io::{Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Child, ChildStdin, Stdio},
};

use crate::support::{DEADLINE, Lab, assert_bytes, eventually, finish, read, run, start};

/// A `dedup` whose input stays open, and that has handled one line.
fn running(lab: &Lab) -> (Child, ChildStdin) {
    let mut child = lab
        .dedup()
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"first\n").unwrap();
    eventually("the first line is marked", || {
        read(lab.seen()) == b"first\n"
    });
    (child, stdin)
}

#[test]
fn a_slow_producers_line_is_handed_over_before_the_next_one_comes() {
    let lab = Lab::new();
    let (child, mut stdin) = running(&lab);
    assert_eq!(read(lab.out()), b"first\n");
    stdin.write_all(b"second\nhal").unwrap();
    eventually("the second line is marked", || {
        read(lab.seen()) == b"first\nsecond\n"
    });
    stdin.write_all(b"f\nfirst\n").unwrap();
    eventually("the third line is marked", || {
        read(lab.seen()) == b"first\nsecond\nhalf\n"
    });
    drop(stdin);
    assert_eq!(finish(child).code, Some(0));
    lab.expect_both("first\nsecond\nhalf\n");
}

#[test]
fn input_that_does_not_block_is_waited_for() {
    let lab = Lab::new();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let child = lab
        .dedup()
        .stdin(OwnedFd::from(theirs))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for line in ["a\n", "b\n"] {
        ours.write_all(line.as_bytes()).unwrap();
        eventually("the line is marked", || {
            read(lab.seen()).ends_with(line.as_bytes())
        });
    }
    drop(ours);
    let finished = finish(child);
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
    lab.expect_both("a\nb\n");
}

#[test]
fn a_reader_that_does_not_block_the_writer_is_waited_for() {
    let lab = Lab::new();
    let lines = (0..100_000).map(|number| format!("order-{number}"));
    let input = lines.collect::<Vec<_>>().join(
        "
",
    ) + "
";
    lab.write("input", &input);
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let child = start(
        lab.dedup()
            .env("DEDUP_OUT", "/dev/stdout")
            .stdout(OwnedFd::from(theirs)),
        lab.path("input"),
    );
    // The socket is full by the time the first marks are there, and nobody has read.
    eventually("the first lines are marked", || {
        !read(lab.seen()).is_empty()
    });
    let mut received = Vec::new();
    ours.read_to_end(&mut received).unwrap();
    let finished = finish(child);
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
    assert_bytes(&received, input.as_bytes(), "what arrived");
    assert_bytes(&read(lab.seen()), input.as_bytes(), "the seen file");
}

#[test]
fn a_second_writer_is_refused_at_once_and_told_who_is_there() {
    let lab = Lab::new();
    let (child, stdin) = running(&lab);
    // The seen file is shared in the first case, only the out file in the second.
    for (seen, held) in [(lab.seen(), lab.seen()), (lab.path("another"), lab.out())] {
        let finished = run(lab.dedup().env("DEDUP_SEEN", seen), "second\n");
        assert_eq!(finished.code, Some(1), "{finished:?}");
        for part in [held.to_str().unwrap(), &child.id().to_string(), "--wait"] {
            assert!(
                finished.stderr.contains(part),
                "{part} is not in {}",
                finished.stderr
            );
        }
    }
    lab.expect_both("first\n");
    drop(stdin);
    assert_eq!(finish(child).code, Some(0));
    lab.feed("second\n");
    lab.expect_both("first\nsecond\n");
}

#[test]
fn a_second_writer_may_wait_for_the_first() {
    let lab = Lab::new();
    let (first, stdin) = running(&lab);
    let seconds = DEADLINE.as_secs().to_string();
    lab.write("input", "first\nsecond\n");
    let second = start(lab.dedup().args(["--wait", &seconds]), lab.path("input"));
    // Its first refusal is behind it once it looks at the clock, for which it sleeps.
    let state = format!("/proc/{}/stat", second.id());
    eventually("the second one waits", || {
        fs::read_to_string(&state).unwrap().contains(") S ")
    });
    lab.expect_both("first\n");
    drop(stdin);
    assert_eq!(finish(first).code, Some(0));
    let finished = finish(second);
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
    lab.expect_both("first\nsecond\n");
}

#[test]
fn a_killed_writer_leaves_no_lock() {
    let lab = Lab::new();
    let (mut child, _stdin) = running(&lab);
    child.kill().unwrap();
    child.wait().unwrap();
    lab.feed("second\n");
    lab.expect_both("first\nsecond\n");
}

#[test]
fn a_lock_on_a_file_that_was_replaced_counts_for_nothing() {
    let lab = Lab::new();
    let (child, stdin) = running(&lab);
    // The second opens the old file and waits; then another one takes its name.
    lab.write("input", "first\nsecond\n");
    let seconds = DEADLINE.as_secs().to_string();
    let second = start(
        lab.dedup().args(["--wait", &seconds, "--out", "other-out"]),
        lab.path("input"),
    );
    let descriptors = format!("/proc/{}/fd", second.id());
    eventually("the second one has the seen file open", || {
        fs::read_dir(&descriptors)
            .unwrap()
            .flatten()
            .any(|entry| fs::read_link(entry.path()).is_ok_and(|path| path == lab.seen()))
    });
    lab.write("new", "second\n");
    fs::rename(lab.path("new"), lab.seen()).unwrap();
    drop(stdin);
    assert_eq!(finish(child).code, Some(0));
    assert_eq!(finish(second).code, Some(0));
    assert_eq!(read(lab.path("other-out")), b"first\n");
    assert_eq!(read(lab.seen()), b"second\nfirst\n");
}
