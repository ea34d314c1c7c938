//! The producer lab's report says what was found, whatever that is.

use std::process::Command;

use crate::support::kafka::repository;

/// The lab's last step, with a log of step 1 and end offsets as nobody expects them. No broker.
const STEP: &str = r#"
set -euo pipefail
. "$1/scripts/lib/lab/producer.sh"
fail() { printf '%s\n' "$*"; exit 1; }
report_value() { sed -n "s/^$2=//p" "$1"; }
end_offsets() { printf 'payments-%s:0:%s\n' dup 4 idem 1 app 2; }
dir=$2
step_report
"#;

/// What the step says, and the report that it leaves.
fn reported(acks: &str, idempotence: &str) -> (String, String) {
    let dir = tempfile::tempdir().unwrap();
    let log = format!(
        "INFO ProducerConfig values: \n\tacks = {acks}\n\tenable.idempotence = {idempotence}\n"
    );
    std::fs::write(dir.path().join("default-producer.log"), log).unwrap();
    let output = Command::new("bash")
        .args(["-c", STEP, "bash"])
        .arg(repository())
        .arg(dir.path())
        .output()
        .unwrap();
    let report = std::fs::read_to_string(dir.path().join("producer-report.txt")).unwrap();
    assert!(output.stderr.is_empty(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    (said.trim().to_owned(), report)
}

fn lines(acks: &str, idempotence: &str) -> String {
    format!(
        "dup_copies=4\nidem_copies=1\ntwo_sessions_copies=2\nacks_default={acks}\nidempotence_default={idempotence}\n"
    )
}

// C088
#[test]
fn the_reports_defaults_are_those_that_the_producer_logged() {
    let (said, report) = reported("-1", "true");
    assert_eq!(report, lines("all", "true"));
    assert_eq!(said, report.trim().replace('\n', " "));

    let (said, report) = reported("1", "true");
    assert_eq!(report, lines("1", "true"));
    assert_eq!(said, "acks_default is 1, not all");

    let (said, report) = reported("-1", "false");
    assert_eq!(report, lines("all", "false"));
    assert_eq!(said, "idempotence_default is false, not true");
}
