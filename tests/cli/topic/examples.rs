//! The unit and the container file call what there is.

use std::process::Command;

use super::{flags, refused, topic};
use crate::support::{DEDUP, Lab, cannot_run};

const UNIT: &str = include_str!("../../../examples/systemd/dedup-topic@.service");
const CONTAINER: &str = include_str!("../../../examples/container/Containerfile");

const TOPIC: &str = include_str!("../../../docs/topic.md");

fn root(path: &str) -> String {
    format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// The only thing that is complained of is the one that is put in here.
const WRONG: [&str; 2] = ["-X", "no.such.setting=1"];

#[test]
fn the_unit_starts_what_its_settings_describe() {
    let lab = Lab::new();
    let start = UNIT
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="))
        .unwrap();
    let arguments = start
        .replace(
            "${CREDENTIALS_DIRECTORY}/settings",
            &root("examples/systemd/orders.conf"),
        )
        .replace("${STATE_DIRECTORY}/", lab.path("").to_str().unwrap());
    let mut words = arguments.split(' ');
    assert_eq!(words.next(), Some("/usr/local/bin/dedup"));
    let mut command = lab.command(DEDUP);
    // Not where the example listens: another test may.
    command.args(words).arg("--listen=0").args(WRONG);
    let finished = refused(&lab, &mut command, &["no.such.setting"]);
    assert!(!finished.stderr.contains("WARN"), "{finished:?}");
}

#[test]
fn the_end_is_given_four_times_the_drain_limit_and_ten_seconds() {
    // Half of the session time-out that librdkafka has.
    let longest_seconds = 4.0 * 45.0 / 2.0 + 10.0;
    for (text, name) in [
        (UNIT, "TimeoutStopSec="),
        (CONTAINER, "--stop-timeout "),
        (TOPIC, "terminationGracePeriodSeconds: "),
    ] {
        let given = text.split_once(name).unwrap().1;
        let given = given.split(|c: char| !c.is_ascii_digit()).next().unwrap();
        assert!(
            given.parse::<f64>().unwrap() >= longest_seconds,
            "{name}{given}"
        );
    }
}

#[test]
fn systemd_understands_the_unit() {
    let lab = Lab::new();
    // Under the name of an instance, and with a program that is there.
    let unit = lab.write(
        "dedup-topic@orders.service",
        UNIT.replace("/usr/local/bin/dedup", DEDUP),
    );
    let verified = Command::new("systemd-analyze")
        .arg("verify")
        .arg(&unit)
        .output();
    let Ok(verified) = verified else {
        return cannot_run("there is no systemd-analyze.");
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    let about_it: Vec<_> = said
        .lines()
        .filter(|line| line.contains("dedup-topic"))
        .collect();
    assert!(verified.status.success() && about_it.is_empty(), "{said}");
}

#[test]
fn the_container_sets_what_there_is() {
    let lab = Lab::new();
    let mut command = topic(&lab);
    let words = CONTAINER.split(|c: char| c.is_whitespace());
    let set: Vec<_> = words
        .filter(|word| word.starts_with("DEDUP_TOPIC_"))
        .filter_map(|word| word.split_once('='))
        .filter(|(name, _)| *name != "DEDUP_TOPIC_STORE")
        .collect();
    assert!(
        set.iter().any(|(name, _)| *name == "DEDUP_TOPIC_LISTEN"),
        "{set:?}"
    );
    for (name, value) in set {
        command.env(name, value);
    }
    let store = format!("--store={}", lab.path("store").display());
    assert!(
        flags(&lab).contains(&store),
        "the flag that wins over the image's own"
    );
    command.arg(store).args(WRONG);
    let finished = refused(&lab, &mut command, &["no.such.setting"]);
    assert!(!finished.stderr.contains("WARN"), "{finished:?}");
}
