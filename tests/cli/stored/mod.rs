//! `dedup --store sled`: a store for the state, and an out file that is kept in step with it.

use std::{
    fs::{self, File},
    process::{Command, Stdio},
};

use crate::support::{Finished, Lab, assert_bytes, eventually, finish, read, run, start};

// Killed at random moments.
mod crash;
// Full disks, limits, and the order of writes.
mod faults;
// Out files and stores that are somebody else's.
mod refusals;

/// `dedup` with the state in a store.
pub(crate) fn dedup(lab: &Lab) -> Command {
    let mut command = lab.dedup();
    command.args(["--store", "sled"]);
    command.env("DEDUP_SEEN", lab.path("seen.store"));
    command
}

/// Feeds `input`, which must go well; returns what was said.
#[track_caller]
pub(crate) fn feed(lab: &Lab, input: impl AsRef<[u8]>) -> String {
    let finished = run(&mut dedup(lab), input);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished.stderr
}

#[track_caller]
pub(crate) fn refused(finished: &Finished, named: &[&str]) {
    assert_eq!(finished.code, Some(1), "{finished:?}");
    for named in named {
        let said = &finished.stderr;
        assert!(said.contains(named), "{named:?} is not in {said}");
    }
    assert!(!finished.stderr.contains("panicked"), "{finished:?}");
}

/// Lines of many lengths, every third a copy, some longer than a record of the store.
pub(crate) fn input() -> Vec<u8> {
    let mut input = b"\n\r\n\0\xff\n a\na \n-n\n".to_vec();
    for number in 0..9_000_usize {
        let number = if number % 3 == 2 { number / 2 } else { number };
        let length = match number {
            1_000 => 63 << 10,
            2_000 => (64 << 10) - 6,
            2_001 => (64 << 10) - 5,
            3_000 => 300_000,
            _ => number % 97,
        };
        input.extend_from_slice(format!("{number}:{}\n", "x".repeat(length)).as_bytes());
    }
    input.extend_from_slice(b"last");
    input
}

#[test]
fn the_out_file_is_the_same_as_with_text_files() {
    let (text, lab, input) = (Lab::new(), Lab::new(), input());
    text.feed(&input);
    assert_eq!(feed(&lab, &input), "");
    assert_bytes(&read(lab.out()), &read(text.out()), "the out file");
}

#[test]
fn a_second_run_adds_nothing() {
    let (lab, input) = (Lab::new(), input());
    feed(&lab, &input);
    let before = read(lab.out());
    assert_eq!(feed(&lab, &input), "");
    assert_bytes(&read(lab.out()), &before, "the out file");
    feed(&lab, "new\nlast\n");
    assert_bytes(&read(lab.out()), &[&before[..], b"new\n"].concat(), "out");
}

#[test]
fn whatever_the_out_file_lacks_at_its_end_is_written_again() {
    let (lab, input) = (Lab::new(), input());
    feed(&lab, &input);
    let whole = read(lab.out());
    for length in [whole.len() - 1, whole.len() / 2, 1, 0] {
        let file = File::options().write(true).open(lab.out()).unwrap();
        file.set_len(length as u64).unwrap();
        let said = feed(&lab, "");
        let missing = format!("{} bytes", whole.len() - length);
        assert!(said.contains(&missing), "{missing:?} is not in {said}");
        assert_bytes(&read(lab.out()), &whole, "the out file");
    }
    fs::remove_file(lab.out()).unwrap();
    feed(&lab, "a line behind\n");
    let expected = [&whole[..], b"a line behind\n"].concat();
    assert_bytes(&read(lab.out()), &expected, "the out file");
}

#[test]
fn every_length_of_a_torn_end_is_completed() {
    let lab = Lab::new();
    let long = [&b"y".repeat(200_000)[..], b"\nb\n"].concat();
    feed(&lab, "a\n");
    feed(&lab, &long);
    let whole = read(lab.out());
    let bytes = whole.len();
    let cuts = [
        1,
        2,
        3,
        65_537,
        65_538,
        65_539,
        131_074,
        bytes - 3,
        bytes - 2,
        bytes - 1,
    ];
    for length in cuts {
        let file = File::options().write(true).open(lab.out()).unwrap();
        file.set_len(length as u64).unwrap();
        feed(&lab, "");
        assert_bytes(&read(lab.out()), &whole, "the out file");
    }
}

#[test]
fn a_line_of_many_megabytes_is_kept_and_recognised() {
    let lab = Lab::new();
    let mut input = b"a\n".to_vec();
    input.resize(2 + (8 << 20), b'x');
    input.extend_from_slice(b"\nb\n");
    feed(&lab, &input);
    assert_bytes(&read(lab.out()), &input, "the out file");
    no_record_is_beside_the_log(&lab);
    fs::remove_file(lab.out()).unwrap();
    // One byte less is another line.
    feed(&lab, &input[3..]);
    let expected = [&input[..], &input[3..input.len() - 2]].concat();
    assert_bytes(&read(lab.out()), &expected, "the out file");
}

/// sled keeps a long record in a file of its own, which its flush does not cover.
#[track_caller]
fn no_record_is_beside_the_log(lab: &Lab) {
    let beside = fs::read_dir(lab.path("seen.store/log/blobs")).unwrap();
    assert_eq!(beside.count(), 0, "records are kept in files of their own");
}

#[test]
fn a_large_batch_is_many_records() {
    let lab = Lab::new();
    let input = (0..400_000).flat_map(|number| format!("order-{number}\n").into_bytes());
    let input: Vec<u8> = input.collect();
    feed(&lab, &input);
    no_record_is_beside_the_log(&lab);
    assert_bytes(&read(lab.out()), &input, "the out file");
}

#[test]
fn standard_output_gets_new_lines_only_and_both_kinds_of_out_share_what_was_seen() {
    let lab = Lab::new();
    let out = |input: &str| {
        let finished = run(dedup(&lab).env("DEDUP_OUT", "/dev/stdout"), input);
        assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
        String::from_utf8(finished.stdout).unwrap()
    };
    assert_eq!(out("a\nb\n"), "a\nb\n");
    assert_eq!(out("b\nc\n"), "c\n");
    assert_eq!(feed(&lab, "c\nd\n"), "");
    assert_eq!(read(lab.out()), b"d\n");
    assert_eq!(out("d\ne\n"), "e\n");
    // Redirected into a file, which is the shell's, it is no other thing.
    for (input, expected) in [("e\nf\n", "f\n"), ("f\ng\n", "g\n")] {
        let path = lab.write("input", input);
        let mut command = dedup(&lab);
        command.env("DEDUP_OUT", "/dev/stdout");
        command.stdout(File::create(lab.path("redirected")).unwrap());
        assert_eq!(finish(start(&mut command, path)).code, Some(0));
        assert_eq!(read(lab.path("redirected")), expected.as_bytes());
    }
}

#[test]
fn lines_go_out_while_the_input_is_open() {
    let lab = Lab::new();
    let mut child = dedup(&lab).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for line in ["a\n", "b\n"] {
        std::io::Write::write_all(&mut stdin, line.as_bytes()).unwrap();
        eventually("the line is out", || {
            read(lab.out()).ends_with(line.as_bytes())
        });
    }
    drop(stdin);
    assert_eq!(finish(child).code, Some(0));
}
