//! `dedup topic` without a broker: its call, its settings, what can be asked of it while it waits,
//! and how it ends. What it does with records is in `tests/topic/`.

mod examples;
mod pages;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::support::{DEDUP, Finished, Lab, run};

/// Nobody listens there, and nobody answers.
const NOBODY: &str = "127.0.0.1:1";

/// All that is needed, as flags.
fn flags(lab: &Lab) -> Vec<String> {
    let store = lab.path("store").to_str().unwrap().to_owned();
    let flags = [
        ("from", "in"),
        ("to", "out"),
        ("key", "record-key"),
        ("brokers", NOBODY),
        ("group", "g"),
        ("store", &store),
    ];
    flags
        .map(|(name, value)| format!("--{name}={value}"))
        .into()
}

fn topic(lab: &Lab) -> Command {
    let mut command = lab.command(DEDUP);
    command.arg("topic");
    command
}

/// It ends with code 2, says each of the words, and has made nothing.
#[track_caller]
fn refused(lab: &Lab, command: &mut Command, words: &[&str]) -> Finished {
    let finished = run(command, "");
    assert_eq!(finished.code, Some(2), "{finished:?}");
    for word in words {
        let said = &finished.stderr;
        assert!(said.contains(word), "no {word:?} in {said}");
    }
    assert!(!lab.path("store").exists(), "a store was made");
    finished
}

#[test]
fn help_says_everything_that_can_be_set() {
    let lab = Lab::new();
    let finished = run(topic(&lab).arg("--help"), "");
    let help = String::from_utf8(finished.stdout).unwrap();
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
    for part in [
        "Usage: dedup topic",
        "--from TOPIC",
        "--dead-letter TOPIC",
        "--listen ADDRESS",
        "DEDUP_TOPIC_FROM",
        "kafka.client.id",
        "Exit codes:",
    ] {
        assert!(help.contains(part), "{part} is not in\n{help}");
    }
    let wide: Vec<_> = help.lines().filter(|line| line.len() > 80).collect();
    assert!(wide.is_empty(), "wider than a terminal: {wide:?}");
    let of_dedup = run(lab.command(DEDUP).arg("--help"), "");
    let of_dedup = String::from_utf8(of_dedup.stdout).unwrap();
    assert!(of_dedup.contains("dedup topic --help"), "{of_dedup}");
}

#[test]
fn everything_that_is_missing_is_named_at_once() {
    let lab = Lab::new();
    let missing = ["--from", "--to", "--key", "--brokers", "--group", "--store"];
    refused(&lab, &mut topic(&lab), &missing);
    let finished = refused(
        &lab,
        topic(&lab).args(&flags(&lab)[1..]),
        &["missing: --from"],
    );
    assert!(!finished.stderr.contains("--to,"), "{}", finished.stderr);
}

#[test]
fn a_setting_that_is_wrong_is_named_with_its_place() {
    let lab = Lab::new();
    for (flag, words) in [
        ("--to=in", &["--to", "'in' is --from already"][..]),
        ("--from=^in.*", &["--from", "no topic's name"]),
        ("--from=..", &["--from", "no topic's name"]),
        ("--key=event-id", &["--key", "header:NAME"]),
        ("--key=json:id", &["--key", "JSON pointer"]),
        ("--scope=all", &["--scope", "topic, partition"]),
        ("--missing-key=drop", &["--missing-key", "reject, pass"]),
        ("--mismatch=pass", &["--mismatch", "reject, drop"]),
        ("--partition=0", &["--partition", "key, same"]),
        (
            "--commit-within-ms=1",
            &["--commit-within-ms", "2 to 60000"],
        ),
        ("--drain-seconds=soon", &["--drain-seconds", "1 to 3600"]),
        ("--listen=localhost", &["--listen", "127.0.0.1:9464"]),
        ("--listen=65536", &["--listen"]),
        ("--log=xml", &["--log", "text, json"]),
        ("--log-level=loud", &["--log-level", "debug"]),
        ("--dead-letter=in", &["--dead-letter", "--from"]),
        ("--dead-letter=out", &["--dead-letter", "--to"]),
        ("--store=", &["--store is empty"]),
        ("--form=in", &["--form"]),
        ("stray", &["stray"]),
    ] {
        let name = flag.split('=').next().unwrap();
        let mut command = topic(&lab);
        let others = flags(&lab);
        let others = others
            .iter()
            .filter(|other| !other.starts_with(&format!("{name}=")));
        command.args(others).arg(flag);
        refused(&lab, &mut command, &[words, &["--help"]].concat());
    }
    let mut twice = topic(&lab);
    twice.args(flags(&lab)).arg("--from=other");
    refused(&lab, &mut twice, &["--from is given twice"]);
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let lab = Lab::new();
    // Which one is in force is told by which one is complained of.
    let file = lab.write("settings", "scope=file\nlog-level=info\n");
    let mut command = topic(&lab);
    command.args(flags(&lab)).arg("--config").arg(&file);
    refused(&lab, &mut command, &["settings, line 1, scope", "'file'"]);
    command.env("DEDUP_TOPIC_SCOPE", "variable");
    refused(&lab, &mut command, &["DEDUP_TOPIC_SCOPE: 'variable'"]);
    command.arg("--scope=flag");
    refused(&lab, &mut command, &["--scope: 'flag'"]);
    // By whichever name: the file's is wrong, and not looked at.
    let other = lab.write("other", "kafka.topic.auto.offset.reset=file\n");
    let mut command = topic(&lab);
    command.args(flags(&lab)).arg("--config").arg(&other);
    refused(&lab, &mut command, &["topic.auto.offset.reset"]);
    command.args(["-X", "auto.offset.reset=flag"]);
    let finished = refused(&lab, &mut command, &["auto.offset.reset"]);
    assert!(!finished.stderr.contains("topic.auto"), "{finished:?}");
    // An empty variable is an unset one, and a variable names the file as well.
    let mut command = topic(&lab);
    command.args(flags(&lab)).env("DEDUP_TOPIC_SCOPE", "");
    command.env("DEDUP_TOPIC_CONFIG", &file);
    refused(&lab, &mut command, &["settings, line 1, scope"]);
}

#[test]
fn all_of_it_can_stand_in_the_environment_or_in_the_file() {
    let lab = Lab::new();
    let pairs = flags(&lab);
    let pairs = pairs.iter().filter_map(|flag| flag[2..].split_once('='));
    let (mut variables, mut lines) = (topic(&lab), vec!["# all of it\n".to_owned()]);
    for (name, value) in pairs {
        variables.env(format!("DEDUP_TOPIC_{}", name.to_uppercase()), value);
        lines.push(format!("{name} = {value}\r"));
    }
    // The only thing wrong comes last.
    variables.env("DEDUP_TOPIC_KAFKA_SESSION_TIMEOUT_MS", "soon");
    refused(&lab, &mut variables, &["session.timeout.ms"]);
    lines.push("kafka.session.timeout.ms=soon".to_owned());
    let file = lab.write("settings", lines.join("\n"));
    let mut command = topic(&lab);
    command.arg("--config").arg(file);
    refused(&lab, &mut command, &["session.timeout.ms"]);
}

#[test]
fn a_line_of_the_file_that_is_no_setting_is_named_by_its_number() {
    let lab = Lab::new();
    for (lines, words) in [
        (
            "from=in\nform=in\n",
            "line 2, form: there is no such setting",
        ),
        (
            "from=in\n\nfrom=in\n",
            "line 3: from stands in line 1 already",
        ),
        ("from\n", "line 1: it is not name=value"),
        ("from=\n", "line 1, from: it is empty"),
        (
            "kafka.group.id=g\n",
            "line 1, kafka.group.id: say it with group",
        ),
        ("config=other\n", "line 1, config: there is no such setting"),
    ] {
        let file = lab.write("settings", lines);
        let mut command = topic(&lab);
        command.arg("--config").arg(file);
        refused(&lab, &mut command, &["settings", words]);
    }
    let mut command = topic(&lab);
    command.args(["--config", "missing"]);
    refused(&lab, &mut command, &["missing: cannot read the settings"]);
}

#[test]
fn librdkafkas_settings_are_passed_on_by_their_names() {
    let lab = Lab::new();
    for (args, words) in [
        (&["-X", "no.such.setting=1"][..], "no.such.setting"),
        (&["-Xsession.timeout.ms=soon"], "session.timeout.ms"),
        (&["-X", "client.id"], "NAME=VALUE"),
        (&["-X", "=1"], "NAME=VALUE"),
        (
            &["-X", "client.id=a", "-X", "client.id=b"],
            "client.id is given twice",
        ),
        (&["-X", "bootstrap.servers=a:1"], "say it with brokers"),
        (&["-X", "group.id=g"], "say it with group"),
        (
            &["-X", "linger.ms=1", "-X", "queue.buffering.max.ms=2"],
            "it is linger.ms by another name",
        ),
    ] {
        refused(&lab, topic(&lab).args(flags(&lab)).args(args), &[words]);
    }
}

#[test]
fn a_secret_is_not_taken_from_the_command_line_and_not_repeated_anywhere() {
    let lab = Lab::new();
    let mut command = topic(&lab);
    command.args(flags(&lab));
    command.args(["-X", "sasl.password=hunter2"]);
    let finished = refused(
        &lab,
        &mut command,
        &["sasl.password", "file", "environment"],
    );
    assert!(!finished.stderr.contains("hunter2"));
    for (pair, words) in [
        ("sasl.oauthbearer.assertion.private.key.pem=hunter2", "file"),
        (
            "sasl.oauthbearer.assertion.private.key.passphrase=hunter2",
            "file",
        ),
        ("sasl.password:hunter2", "NAME=VALUE"),
        ("sasl.password:hunter2=", "NAME=VALUE"),
    ] {
        let finished = refused(
            &lab,
            topic(&lab).args(flags(&lab)).args(["-X", pair]),
            &[words],
        );
        assert!(!finished.stderr.contains("hunter2"), "{finished:?}");
    }
    let mut command = topic(&lab);
    command.args(flags(&lab));
    command.env("DEDUP_TOPIC_KAFKA_SSL_KEY_PEM", "hunter2");
    let finished = refused(&lab, &mut command, &["ssl.key.pem"]);
    assert!(!finished.stderr.contains("hunter2"), "{finished:?}");

    // A mistyped name is named; what stands behind it may be the secret.
    let file = lab.write("settings", "kafka.sasl.pasword=hunter2\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let mut command = topic(&lab);
    command.args(flags(&lab)).arg("--config").arg(&file);
    let finished = refused(&lab, &mut command, &["sasl.pasword"]);
    assert!(!finished.stderr.contains("hunter2"), "{finished:?}");

    // And a file with a secret that everybody may read is warned of.
    fs::write(&file, "kafka.ssl.key.password=hunter2\nkafka.x=1\n").unwrap();
    let finished = refused(&lab, &mut command, &["WARN", "chmod o-r"]);
    assert!(!finished.stderr.contains("hunter2"), "{finished:?}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let finished = refused(&lab, &mut command, &[]);
    assert!(!finished.stderr.contains("chmod"), "{finished:?}");
}

#[test]
fn a_variable_that_only_looks_like_a_setting_is_warned_of() {
    let lab = Lab::new();
    let mut command = topic(&lab);
    command.args(flags(&lab)).args(["-X", "x=1"]);
    command.env("DEDUP_TOPIC_SCOPES", "partition");
    // As for a Service of the name dedup-topic-kafka.
    command.env("DEDUP_TOPIC_KAFKA_SERVICE_HOST", "10.0.0.1");
    command.env("DEDUP_TOPIC_KAFKA_PORT_9092_TCP_ADDR", "10.0.0.1");
    let words = [
        "WARN",
        "DEDUP_TOPIC_SCOPES",
        "DEDUP_TOPIC_KAFKA_SERVICE_HOST",
        "DEDUP_TOPIC_KAFKA_PORT_9092_TCP_ADDR",
        "enableServiceLinks: false",
    ];
    refused(&lab, &mut command, &words);
}

#[test]
fn a_place_that_cannot_be_a_store_is_refused_before_anything_is_connected() {
    let lab = Lab::new();
    lab.write("file", "");
    for (store, words) in [("file", "is no directory"), ("a/b", "is missing")] {
        let mut command = topic(&lab);
        command.args(&flags(&lab)[..5]).args(["--store", store]);
        let finished = run(&mut command, "");
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.stderr.contains(words), "{finished:?}");
        assert!(finished.stderr.contains("--store"), "{finished:?}");
    }
}

#[test]
fn in_a_json_log_what_is_wrong_with_the_settings_is_an_object_too() {
    let lab = Lab::new();
    let mut command = topic(&lab);
    command
        .args(flags(&lab))
        .args(["--log=json", "--scope=all"]);
    let finished = refused(&lab, &mut command, &[]);
    let line: serde_json::Value = serde_json::from_str(&finished.stderr).unwrap();
    assert_eq!(line["level"], "ERROR");
    assert!(line["message"].as_str().unwrap().contains("--scope"));
}
