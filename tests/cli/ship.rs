//! `ship-process`: the lab's handler, with the lab's bug.

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
};

use crate::support::{
    Finished, Lab, SHIP_PROCESS, assert_bytes, eventually, finish, read, run, start,
};

fn ship(lab: &Lab) -> Command {
    let mut command = lab.command(SHIP_PROCESS);
    command
        .env("SHIP_PROCESSED", lab.path("processed.txt"))
        .env_remove("SHIP_FIXED");
    command
}

fn processed(lab: &Lab) -> Vec<u8> {
    read(lab.path("processed.txt"))
}

#[track_caller]
fn died(finished: &Finished) {
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("order-2"), "{finished:?}");
}

// C110
#[test]
fn the_lab_comes_out_to_the_number() {
    let lab = Lab::new();
    died(&run(&mut ship(&lab), "order-1\norder-2\norder-3\n"));
    assert_eq!(processed(&lab), b"order-1\n");
    let orders = "order-1\norder-2\norder-3\norder-4\norder-5\n";
    let finished = run(ship(&lab).env("SHIP_FIXED", "1"), orders);
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
    assert_eq!(processed(&lab), format!("order-1\n{orders}").as_bytes());
}

#[test]
fn it_dies_at_that_line_exactly_and_at_no_other() {
    let lab = Lab::new();
    let close = "order-22\n order-2\norder-2 \norder-2\r\nxorder-2\nORDER-2\n\n";
    assert_eq!(run(&mut ship(&lab), close).code, Some(0));
    assert_eq!(processed(&lab), close.as_bytes());
    // Also without a newline.
    died(&run(&mut ship(&lab), "order-3\norder-2"));
    assert_eq!(processed(&lab), format!("{close}order-3\n").as_bytes());
}

#[test]
fn it_is_fixed_by_exactly_1() {
    for (value, code) in [
        ("1", 0),
        ("", 1),
        ("0", 1),
        ("11", 1),
        (" 1", 1),
        ("true", 1),
    ] {
        let lab = Lab::new();
        let finished = run(ship(&lab).env("SHIP_FIXED", value), "order-2\n");
        assert_eq!(finished.code, Some(code), "SHIP_FIXED={value:?}");
    }
}

#[test]
fn nothing_is_deduplicated_reordered_or_cut() {
    let lab = Lab::new();
    let mut input = b"b\na\nb\n\n\r\n\0\xff\n-n\na\\b\n".to_vec();
    input.resize(input.len() + (8 << 20), b'x');
    input.extend_from_slice(b"\nlast");
    assert_eq!(run(&mut ship(&lab), &input).code, Some(0));
    input.push(b'\n');
    assert_bytes(&processed(&lab), &input, "the processed file");
    assert_eq!(run(&mut ship(&lab), "b\n").code, Some(0));
    assert_bytes(
        &processed(&lab),
        &[&input[..], b"b\n"].concat(),
        "the processed file",
    );
}

#[test]
fn nothing_is_written_before_all_is_read() {
    let lab = Lab::new();
    let mut child = ship(&lab)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than a pipe holds, so that some of it is read when the call comes back.
    let lines = "order-1\n".repeat(20_000);
    stdin.write_all(lines.as_bytes()).unwrap();
    eventually("the file is open", || lab.path("processed.txt").exists());
    assert_eq!(processed(&lab), b"");
    drop(stdin);
    assert_eq!(finish(child).code, Some(0));
    assert_eq!(processed(&lab), lines.as_bytes());
}

#[test]
fn a_flag_overrides_the_variable() {
    let lab = Lab::new();
    let finished = run(ship(&lab).args(["--processed", "flag.txt"]), "a\n");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(read(lab.path("flag.txt")), b"a\n");
    assert!(!lab.path("processed.txt").exists());
}

#[test]
fn half_a_line_of_an_earlier_run_is_not_fused_with_the_next() {
    let lab = Lab::new();
    lab.write("processed.txt", "order-1\norde");
    assert_eq!(run(&mut ship(&lab), "").code, Some(0));
    assert_eq!(processed(&lab), b"order-1\norde");
    assert_eq!(run(&mut ship(&lab), "order-3\n").code, Some(0));
    assert_eq!(processed(&lab), b"order-1\norde\norder-3\n");
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_with_its_path() {
    let lab = Lab::new();
    fs::create_dir(lab.path("directory")).unwrap();
    for path in ["directory", "missing/file", "/dev/full"] {
        let finished = run(ship(&lab).env("SHIP_PROCESSED", path), "order-1\n");
        assert_eq!(finished.code, Some(1), "{path}: {finished:?}");
        assert!(finished.stderr.contains(path), "{path}: {finished:?}");
    }
    // An unusable path is found before anything is taken off the pipe.
    let (input, path) = (
        lab.write("input", "order-1\norder-3\n"),
        lab.path("missing/file"),
    );
    let script = format!("'{SHIP_PROCESS}'; head -n 1");
    let mut command = lab.command("bash");
    command
        .args(["-c", &script])
        .env("SHIP_PROCESSED", path)
        .stdout(Stdio::piped());
    let finished = finish(start(&mut command, input));
    assert_eq!(finished.stdout, b"order-1\n");
}

#[test]
fn standard_output_will_do_and_a_reader_that_left_is_a_failure_without_panic() {
    let lab = Lab::new();
    let finished = run(ship(&lab).env("SHIP_PROCESSED", "/dev/stdout"), "a\nb");
    assert_eq!(
        (finished.code, &*finished.stdout),
        (Some(0), &b"a\nb\n"[..])
    );
    lab.write("input", "a\n");
    let child = start(
        ship(&lab)
            .env("SHIP_PROCESSED", "/dev/stdout")
            .stdout(crate::support::pipe_without_reader()),
        lab.path("input"),
    );
    let finished = finish(child);
    assert_eq!(finished.code, Some(1));
    assert!(
        finished.stderr.contains("/dev/stdout"),
        "{}",
        finished.stderr
    );
    assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
}
