//! `dedup --store sled`: a store for the state, and an out file that is kept in step with it.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    process::{Command, Stdio},
};

use crate::faults::watched;
use crate::support::{
    DEDUP, Finished, Lab, SHIP_PROCESS, assert_bytes, cannot_run, eventually, finish, read, run,
    start,
};

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
fn refused(finished: &Finished, named: &[&str]) {
    assert_eq!(finished.code, Some(1), "{finished:?}");
    for named in named {
        let said = &finished.stderr;
        assert!(said.contains(named), "{named:?} is not in {said}");
    }
    assert!(!finished.stderr.contains("panicked"), "{finished:?}");
}

/// Lines of many lengths, every third a copy, some longer than a record of the store.
fn input() -> Vec<u8> {
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
    std::io::Write::write_all(&mut stdin, b"a\n").unwrap();
    eventually("the line is out", || read(lab.out()) == b"a\n");
    fs::write(lab.out(), "a\ntheirs\n").unwrap();
    std::io::Write::write_all(&mut stdin, b"b\n").unwrap();
    drop(stdin);
    refused(&finish(child), &["9 bytes", "byte 2"]);
    assert_eq!(read(lab.out()), b"a\ntheirs\n");
    fs::rename(lab.out(), lab.path("moved")).unwrap();
    feed(&lab, read(lab.path("moved")));
    assert_eq!(read(lab.out()), b"a\nb\ntheirs\n");
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
    lab.write("text", "a\n");
    fs::create_dir(lab.path("full")).unwrap();
    lab.write("full/file", "");
    for no_store in ["text", "full"] {
        let finished = run(dedup(&lab).args(["--seen", no_store]), "a\n");
        refused(&finished, &[no_store, "directory of its own"]);
    }
    assert_eq!(read(lab.out()), b"");
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
    std::io::Write::write_all(&mut stdin, b"a\n").unwrap();
    eventually("the line is out", || read(lab.out()) == b"a\n");
    let pid = first.id().to_string();
    // By the store, and by the out file.
    for (name, value) in [("DEDUP_OUT", "other.txt"), ("DEDUP_SEEN", "other.store")] {
        let finished = run(dedup(&lab).env(name, value), "b\n");
        refused(&finished, &["in use", &pid]);
    }
    lab.write("input", "a\nb\n");
    let second = start(dedup(&lab).args(["--wait", "60"]), lab.path("input"));
    drop(stdin);
    assert_eq!(finish(first).code, Some(0));
    assert_eq!(finish(second).code, Some(0));
    assert_eq!(read(lab.out()), b"a\nb\n");
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
fn into_a_stream_a_line_that_was_not_written_is_not_recorded() {
    let lab = Lab::new();
    let finished = run(dedup(&lab).env("DEDUP_OUT", "/dev/full"), "a\n");
    refused(&finished, &["/dev/full"]);
    feed(&lab, "a\n");
    assert_eq!(read(lab.out()), b"a\n");
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

#[test]
fn the_lines_are_on_disk_in_the_store_before_they_are_written_into_the_file() {
    let cases = [
        (DEDUP, "--store=sled --seen=state", "/processed-dedup.txt"),
        (SHIP_PROCESS, "--state=state", "/processed.txt"),
    ];
    for (program, args, file) in cases {
        let args: Vec<_> = args.split(' ').collect();
        let Some(calls) = watched(&Lab::new(), program, &args) else {
            return;
        };
        let call = |call: &str, name: &str| {
            let wanted = format!("{call} {name}");
            calls.iter().rposition(|call| *call == wanted).unwrap()
        };
        let first_write = format!("write {file}");
        let written = calls.iter().position(|call| *call == first_write).unwrap();
        let before = &calls[..written];
        let synced = before
            .iter()
            .rposition(|call| call == "fdatasync /state/log/db");
        let logged = before
            .iter()
            .rposition(|call| call == "pwrite64 /state/log/db");
        assert!(logged.is_some() && logged < synced, "{calls:?}");
        assert!(call("fdatasync", file) > written, "{calls:?}");
    }
}

#[test]
fn a_full_disk_under_the_out_file_loses_and_repeats_nothing() {
    let private = ["--mount", "--propagation", "private"];
    let possible = Command::new("unshare").args(private).arg("true").output();
    if !possible.is_ok_and(|output| output.status.success()) {
        return cannot_run("a small file system cannot be mounted (needs root and 'unshare')");
    }
    let (lab, input) = (Lab::new(), input());
    lab.write("input", &input);
    let text = Lab::new();
    text.feed(&input);
    fs::create_dir(lab.path("disk")).unwrap();
    let program = DEDUP;
    let script = format!(
        "mount -t tmpfs -o size=200k none disk || exit 99
         '{program}' --store sled < input; code=$?
         cp disk/out first
         mount -o remount,size=64m none disk
         '{program}' --store sled < input || exit 98
         cp disk/out out; exit $code"
    );
    let mut command = lab.command("unshare");
    command
        .args(private)
        .args(["bash", "-c", &script])
        .env("DEDUP_OUT", "disk/out")
        .env("DEDUP_SEEN", "store");
    refused(&run(&mut command, ""), &["disk/out", "next start"]);
    let (first, whole) = (read(lab.path("first")), read(text.out()));
    assert!(first.len() < whole.len() && whole.starts_with(&first));
    assert_bytes(&read(lab.path("out")), &whole, "the out file");
}

#[test]
fn a_limit_that_stops_the_store_loses_and_repeats_nothing() {
    let (lab, input, text) = (Lab::new(), input(), Lab::new());
    text.feed(&input);
    let program = DEDUP;
    for kib in [1, 200, 600] {
        let script = format!("ulimit -f {kib}; trap '' XFSZ; exec '{program}' --store sled");
        let mut command = lab.command("bash");
        command.env("DEDUP_SEEN", lab.path("seen.store"));
        let finished = run(command.args(["-c", &script]), &input);
        assert!(
            finished.code == Some(1) && finished.stderr.contains("seen.store"),
            "{finished:?}"
        );
        let out = read(lab.out());
        assert!(read(text.out()).starts_with(&out), "{} bytes", out.len());
    }
    feed(&lab, &input);
    assert_bytes(&read(lab.out()), &read(text.out()), "the out file");
}
