//! How the tools are called and what they say.

use std::{io::Write, process::Stdio};

use crate::support::{DEDUP, Finished, Lab, SHIP_PROCESS, finish, pipe_without_reader, read, run};

fn call(program: &str, args: &[&str]) -> Finished {
    let lab = Lab::new();
    let finished = run(lab.command(program).args(args), "a\n");
    if finished.code != Some(0) || !finished.stdout.is_empty() {
        assert!(!lab.out().exists(), "{args:?} wrote");
    }
    finished
}

#[test]
fn help_and_version_go_to_standard_output() {
    for program in [DEDUP, SHIP_PROCESS] {
        for flag in ["--help", "-h"] {
            let finished = call(program, &[flag]);
            let help = String::from_utf8(finished.stdout).unwrap();
            assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
            for part in [
                "Usage:",
                "Options:",
                "Environment:",
                "Exit codes:",
                "--version",
            ] {
                assert!(help.contains(part), "{part} is not in\n{help}");
            }
            assert!(
                help.lines().all(|line| line.len() <= 80),
                "wider than a terminal:\n{help}"
            );
        }
        for flag in ["--version", "-V"] {
            let version = String::from_utf8(call(program, &[flag]).stdout).unwrap();
            assert!(
                version.trim_end().ends_with(env!("CARGO_PKG_VERSION")),
                "{version}"
            );
        }
    }
}

#[test]
fn a_wrong_call_is_code_2_names_the_argument_and_writes_nothing() {
    let dedup = [
        (&["--sen", "x"][..], "--sen"),
        (&["file.txt"], "file.txt"),
        (&["--seen"], "--seen"),
        (&["--seen="], "--seen"),
        (&["--out", ""], "--out"),
        (&["--store", "rocks"], "'rocks'"),
        #[cfg(not(feature = "redb"))]
        (&["--store", "redb"], "feature 'redb'"),
        #[cfg(all(feature = "sled", not(feature = "redb")))]
        (&["store", "show", "redb:seen"], "feature 'redb'"),
        #[cfg(not(feature = "sled"))]
        (&["--store", "sled"], "feature 'sled'"),
        (&["--key", "id"], "'id'"),
        (&["--key", "field:0"], "'0'"),
        (&["--key", "json:id"], "JSON pointer"),
        (&["--delimiter", ","], "--delimiter"),
        (&["--key=field:1", "--delimiter="], "--delimiter"),
        (&["--key=field:1", "--delimiter", "\n"], "--delimiter"),
        (&["--no-key", "pass"], "--no-key"),
        (&["--key=field:1", "--no-key=drop"], "'drop'"),
        (&["--stats", "xml"], "'xml'"),
        (&["--stats-file", "x"], "--stats"),
        (&["--ttl", "7"], "'7'"),
        (&["--ttl", "0d"], "'0d'"),
        #[cfg(feature = "sled")]
        (&["--ttl=7d", "--store=sled"], "--store text"),
        (&["--wait", "soon"], "'soon'"),
        (&["--wait", "86401"], "86400"),
        (&["--verbose=yes"], "--verbose"),
    ];
    let ship = [
        (&["--fixed"][..], "--fixed"),
        (&["--processed="], "--processed"),
        (&["--state="], "--state"),
        #[cfg(not(feature = "sled"))]
        (&["--idempotent"], "feature 'sled'"),
        (&["x"], "x"),
    ];
    let dedup = dedup.iter().map(|case| (DEDUP, case));
    for (program, (args, named)) in dedup.chain(ship.iter().map(|case| (SHIP_PROCESS, case))) {
        let finished = call(program, args);
        assert_eq!(finished.code, Some(2), "{args:?}: {finished:?}");
        assert!(
            finished.stderr.contains(named),
            "{args:?}: {}",
            finished.stderr
        );
        assert!(
            finished.stderr.contains("--help"),
            "{args:?}: {}",
            finished.stderr
        );
    }
}

#[test]
fn verbose_counts_and_goes_to_standard_error() {
    let lab = Lab::new();
    let finished = run(lab.dedup().arg("-v"), "a\nb\na\n\n\nb");
    assert_eq!((finished.code, &*finished.stdout), (Some(0), &b""[..]));
    let counts = "dedup: 6 lines read, 3 written, 3 duplicates, ";
    assert!(finished.stderr.starts_with(counts), "{}", finished.stderr);
    assert!(
        finished.stderr.ends_with(" seconds\n"),
        "{}",
        finished.stderr
    );
}

#[test]
fn flags_override_the_environment() {
    let lab = Lab::new();
    let (seen, out) = (lab.path("s"), lab.path("o"));
    let finished = run(
        lab.dedup().arg("--seen").arg(&seen).arg("--out").arg(&out),
        "a\n",
    );
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!((read(seen), read(out)), (b"a\n".to_vec(), b"a\n".to_vec()));
    assert!(!lab.seen().exists() && !lab.out().exists());
}

#[test]
fn nobody_to_talk_to_is_no_panic() {
    let lab = Lab::new();
    for program in [DEDUP, SHIP_PROCESS] {
        for (flag, code) in [("--help", 0), ("--version", 0), ("--bad", 2)] {
            let finished = finish(
                lab.command(program)
                    .arg(flag)
                    .stdin(Stdio::null())
                    .stdout(pipe_without_reader())
                    .stderr(pipe_without_reader())
                    .spawn()
                    .unwrap(),
            );
            assert_eq!(finished.code, Some(code), "{program} {flag}");
        }
    }
    let mut child = lab
        .dedup()
        .arg("-v")
        .stdin(Stdio::piped())
        .stderr(pipe_without_reader())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"a\n").unwrap();
    assert_eq!(finish(child).code, Some(0));
    lab.expect_both("a\n");
}
