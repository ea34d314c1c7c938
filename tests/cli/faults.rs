//! Full disks, limits, readers that go away, and the order in which things reach the disk.

use std::{
    fs,
    io::Read,
    process::{Command, Stdio},
};

use crate::support::{
    DEDUP, Finished, Lab, SHIP_PROCESS, assert_bytes, cannot_run, eventually, finish,
    pipe_without_reader, read, run, start,
};

/// Distinct lines of 100 bytes.
fn lines(count: usize) -> Vec<u8> {
    (0..count)
        .flat_map(|number| format!("order-{number:093}\n").into_bytes())
        .collect()
}

#[track_caller]
fn failed(finished: &Finished, named: &str) {
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.stderr.contains(named),
        "{named} is not in {}",
        finished.stderr
    );
    assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
}

// C101
#[test]
fn a_line_that_could_not_be_written_is_not_marked() {
    let lab = Lab::new();
    failed(
        &run(lab.dedup().env("DEDUP_OUT", "/dev/full"), "a\n"),
        "/dev/full",
    );
    assert_eq!(read(lab.seen()), b"");
    lab.feed("a\n");
    lab.expect_both("a\n");
}

/// Runs `dedup` with files limited to `kib`, as a full disk would. The input is a file: from a pipe
/// that runs dry it would come in more batches than one.
fn limited(lab: &Lab, kib: usize, input: &[u8]) -> Finished {
    let script = format!("ulimit -f {kib}; trap '' XFSZ; exec '{DEDUP}'");
    let input = lab.write("input", input);
    finish(start(lab.command("bash").args(["-c", &script]), input))
}

#[test]
fn what_fits_is_marked_and_the_rest_comes_once_when_there_is_room() {
    let (lab, input) = (Lab::new(), lines(3_000));
    failed(&limited(&lab, 101, &input), lab.out().to_str().unwrap());
    let fits = 101 * 1024 / 100 * 100;
    lab.expect_both(&input[..fits]);
    lab.feed(&input);
    lab.expect_both(&input);
}

#[test]
fn a_mark_that_could_not_be_written_is_a_failure_and_leaves_no_half_mark() {
    let (lab, input) = (Lab::new(), lines(3_000));
    // The seen file reaches the limit first.
    let older = b"older, and not in the out file\n".repeat(3_000);
    fs::write(lab.seen(), &older).unwrap();
    failed(&limited(&lab, 300, &input), lab.seen().to_str().unwrap());
    let room = (300 * 1024 - older.len()) / 100 * 100;
    assert_bytes(&read(lab.out()), &input, "the out file");
    assert_bytes(
        &read(lab.seen())[older.len()..],
        &input[..room],
        "the new marks",
    );
    // The lines without a mark are written again, as it said.
    lab.feed(&input);
    assert_bytes(&read(lab.seen())[older.len()..], &input, "the new marks");
    assert_bytes(
        &read(lab.out()),
        &[&input[..], &input[room..]].concat(),
        "the out file",
    );
}

// C085
#[test]
fn a_full_disk_loses_and_repeats_nothing() {
    let private = ["--mount", "--propagation", "private"];
    let possible = Command::new("unshare").args(private).arg("true").output();
    if !possible.is_ok_and(|output| output.status.success()) {
        return cannot_run("a small file system cannot be mounted (needs root and 'unshare')");
    }
    let (lab, input) = (Lab::new(), lines(60_000));
    lab.write("input", &input);
    for name in ["disk", "first"] {
        fs::create_dir(lab.path(name)).unwrap();
    }
    // The mount is this script's alone, so it is gone when the script is, however it ends.
    let script = format!(
        "mount -t tmpfs -o size=4m none disk || exit 99
         '{DEDUP}' < input; code=$?
         cp disk/* first/
         mount -o remount,size=64m none disk
         '{DEDUP}' < input || exit 98
         cp disk/out out; cp disk/seen seen; exit $code"
    );
    let mut command = lab.command("unshare");
    command
        .args(private)
        .args(["bash", "-c", &script])
        .env("DEDUP_OUT", "disk/out")
        .env("DEDUP_SEEN", "disk/seen");
    failed(&run(&mut command, ""), "disk/");
    let (out, seen) = (read(lab.path("first/out")), read(lab.path("first/seen")));
    assert!(
        out.ends_with(b"\n") && input.starts_with(&out),
        "{} bytes",
        out.len()
    );
    assert!(
        out.starts_with(&seen) && seen.len() < input.len(),
        "{} bytes",
        seen.len()
    );
    assert_bytes(&read(lab.path("seen")), &input, "the seen file");
    let repeated = &input[seen.len()..];
    assert_bytes(
        &read(lab.path("out")),
        &[&out[..], repeated].concat(),
        "the out file",
    );
}

// C107
#[test]
fn a_reader_that_leaves_is_no_failure_and_only_lines_it_was_given_are_marked() {
    let (lab, input) = (Lab::new(), lines(100_000));
    lab.write("input", &input);
    let mut child = start(
        lab.dedup()
            .env("DEDUP_OUT", "/dev/stdout")
            .stdout(Stdio::piped()),
        lab.path("input"),
    );
    let mut reader = child.stdout.take().unwrap();
    let mut taken = [0; 10_050];
    reader.read_exact(&mut taken).unwrap();
    drop(reader);
    let finished = finish(child);
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
    let seen = read(lab.seen());
    assert!(input.starts_with(&seen), "marked what was not next");
    assert!(seen.len() % 100 == 0, "half a line is marked");
    let pipe = 64 * 1024;
    assert!(
        seen.len() <= taken.len() + pipe,
        "{} bytes are marked",
        seen.len()
    );
    // What was given whole and read is marked, so that it does not come again.
    assert!(seen.len() >= 10_000, "{} bytes are marked", seen.len());
}

// C107
#[test]
fn the_usual_pipeline_into_head_is_quiet() {
    let (lab, input) = (Lab::new(), lines(100_000));
    lab.write("input", &input);
    let script = format!("set -o pipefail; '{DEDUP}' < input | head -n 1");
    let mut command = lab.command("bash");
    let finished = run(
        command
            .args(["-c", &script])
            .env("DEDUP_OUT", "/dev/stdout"),
        "",
    );
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
    assert_eq!(finished.stdout, &input[..100]);
    assert!(read(lab.seen()).len() < 200_000);
}

#[test]
fn the_reader_of_a_fifo_that_leaves_is_a_failure() {
    // Its status is not the pipeline's, so nobody else would tell.
    let (lab, input) = (Lab::new(), lines(10_000));
    let script =
        "mkfifo fifo; head -n 1 fifo > first & '$DEDUP' < input; code=$?; wait; exit $code"
            .replace("$DEDUP", DEDUP);
    lab.write("input", &input);
    let mut command = lab.command("bash");
    let finished = run(command.args(["-c", &script]).env("DEDUP_OUT", "fifo"), "");
    failed(&finished, "fifo");
    assert_eq!(read(lab.path("first")), &input[..100]);
}

#[test]
fn standard_output_closed_from_the_start_marks_nothing() {
    let lab = Lab::new();
    lab.write("input", "a\n");
    let child = start(
        lab.dedup()
            .env("DEDUP_OUT", "/dev/stdout")
            .stdout(pipe_without_reader()),
        lab.path("input"),
    );
    let finished = finish(child);
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
    assert_eq!(read(lab.seen()), b"");
}

#[test]
fn a_failure_is_told_while_the_input_is_still_open() {
    let lab = Lab::new();
    let mut child = lab
        .dedup()
        .env("DEDUP_OUT", "/dev/full")
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"a\n").unwrap();
    eventually("it ends", || child.try_wait().unwrap().is_some());
    assert_eq!(finish(child).code, Some(1));
}

#[test]
fn input_that_cannot_be_read_is_a_failure() {
    let lab = Lab::new();
    for program in [DEDUP, SHIP_PROCESS] {
        let child = start(
            lab.command(program)
                .env("SHIP_PROCESSED", lab.path("processed.txt")),
            lab.path(""),
        );
        failed(&finish(child), "standard input");
    }
}

/// The calls that write and sync the files of the lab, in order.
pub(crate) fn watched(lab: &Lab, program: &str, args: &[&str]) -> Option<Vec<String>> {
    let possible = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .output();
    if !possible.is_ok_and(|output| output.status.success()) {
        cannot_run("the order of system calls cannot be watched (needs 'strace')");
        return None;
    }
    let mut command = lab.command("strace");
    command.args([
        "-f",
        "-y",
        "-o",
        "trace",
        "-e",
        "trace=write,pwrite64,fdatasync,fsync",
        program,
    ]);
    command.args(args);
    command.env("SHIP_PROCESSED", lab.path("processed.txt"));
    assert_eq!(run(&mut command, "a\nb\n").code, Some(0));
    let trace = String::from_utf8(read(lab.path("trace"))).unwrap();
    // Each line reads: process, call(descriptor<path>, …
    let calls = trace.lines().filter_map(|line| {
        let (call, rest) = line.split_once(' ')?.1.trim_start().split_once('(')?;
        let path = rest.split_once('<')?.1.split_once('>')?.0;
        let name = path.strip_prefix(lab.path("").to_str()?.trim_end_matches('/'))?;
        Some(format!("{call} {name}"))
    });
    Some(calls.collect())
}

#[test]
fn the_out_file_is_on_disk_before_the_seen_file_is_written() {
    let expected = [
        // The names of the two new files, in their directory.
        "fsync ",
        "fsync ",
        "write /processed-dedup.txt",
        "fdatasync /processed-dedup.txt",
        "write /seen.txt",
        "fdatasync /seen.txt",
    ];
    if let Some(calls) = watched(&Lab::new(), DEDUP, &[]) {
        assert_eq!(calls, expected);
    }
}

#[test]
fn processed_lines_are_on_disk_at_the_end() {
    if let Some(calls) = watched(&Lab::new(), SHIP_PROCESS, &[]) {
        assert_eq!(calls, ["write /processed.txt", "fsync /processed.txt"]);
    }
}
