//! `scripts/kafka`, on which every test with a real broker relies, and how `scripts/lab` is called.
#![allow(clippy::unwrap_used, reason = "the helpers are tests too")]

mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use support::kafka::{Kafka, repository, wait_until};

#[test]
fn a_killed_broker_comes_back_on_the_same_port_with_its_topics() {
    let Some(kafka) = Kafka::start() else { return };
    if kafka.pid().is_none() {
        return; // KAFKA_BOOTSTRAP's broker is not ours to kill.
    }
    kafka.create_topic("kept", 3);
    let before = kafka.pid();
    kafka.kill();
    assert_eq!(kafka.pid(), None);
    kafka.resume();
    assert_ne!(kafka.pid(), before);
    assert_eq!(kafka.end_offsets("kept"), [0, 0, 0]);
}

#[test]
fn a_broker_and_its_data_are_gone_once_the_process_it_was_started_for_has_ended() {
    let mut parent = Command::new("sleep").arg("300").spawn().unwrap();
    let kafka = Kafka::start_under(parent.id());
    let pid = kafka.as_ref().and_then(Kafka::pid);
    parent.kill().unwrap();
    parent.wait().unwrap();
    let (Some(kafka), Some(pid)) = (kafka, pid) else {
        return;
    };
    let data = kafka.log_dir().unwrap().to_owned();
    wait_until("the broker's process and data are gone", || {
        !data.exists() && !Path::new(&format!("/proc/{pid}")).exists()
    });
}

/// Runs a script that starts nothing; gives its exit status and what it said on either stream.
fn call(script: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(repository().join(script))
        .args(args)
        .env_remove("KAFKA_BOOTSTRAP")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn help_goes_to_standard_output() {
    for script in ["scripts/kafka", "scripts/lab"] {
        for flag in ["-h", "--help", "help"] {
            let (code, out, err) = call(script, &[flag]);
            assert_eq!((code, &*err), (Some(0), ""), "{script} {flag}");
            assert!(out.contains("Exit status"), "{script} {flag}: {out}");
        }
    }
    assert_eq!(call("scripts/kafka", &["up", "--help"]).0, Some(0));
}

#[test]
fn a_wrong_call_is_status_2_and_one_line_that_names_what_is_wrong() {
    for (script, args, words) in [
        ("scripts/kafka", &["foo"][..], "foo: unknown command"),
        (
            "scripts/kafka",
            &["up", "--bogus"],
            "--bogus: unknown option",
        ),
        (
            "scripts/kafka",
            &["up", "--bogus", "x"],
            "--bogus: unknown option",
        ),
        ("scripts/kafka", &["up", "--port"], "--port needs a value"),
        ("scripts/kafka", &["up", "--port", "65536"], "--port 65536"),
        (
            "scripts/kafka",
            &["down", "--dir", ""],
            "--dir needs a value",
        ),
        (
            "scripts/kafka",
            &["up", "--parent", ""],
            "--parent needs a value",
        ),
        (
            "scripts/kafka",
            &["up", "--parent", "self"],
            "--parent self",
        ),
        ("scripts/kafka", &["up", "--parent", "0"], "--parent 0"),
        ("scripts/kafka", &["up", "--config", "x"], "KEY=VALUE"),
        ("scripts/lab", &[], "no lab was named"),
        ("scripts/lab", &["other", "dir"], "other: no such lab"),
        ("scripts/lab", &["consumer"], "one directory"),
        ("scripts/lab", &["consumer", ""], "name a new directory"),
    ] {
        let (code, out, err) = call(script, args);
        assert_eq!((code, &*out), (Some(2), ""), "{script} {args:?}: {err}");
        assert!(err.contains(words), "{script} {args:?}: {err}");
        assert_eq!(err.lines().count(), 1, "{script} {args:?}: {err}");
    }
}

#[test]
fn a_lab_says_what_to_do_about_a_wrong_directory_or_program() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (code, _, err) = call("scripts/lab", &["consumer", file.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(err.contains("is a file: name a new directory"), "{err}");
    for (lab, variable) in [
        ("consumer", "SHIP_PROCESS_BIN"),
        ("producer", "KAFKA_LAB_SLOW_BIN"),
    ] {
        let output = Command::new(repository().join("scripts/lab"))
            .args([lab, dir.path().join(lab).to_str().unwrap()])
            .env(variable, "/nope")
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{err}");
        let words = format!("{variable}=/nope: no such program; correct or unset it");
        assert!(err.contains(&words), "{err}");
    }
}
