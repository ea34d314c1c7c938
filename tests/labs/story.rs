//! The example that a newcomer runs first.

use std::process::{Command, Stdio};

use crate::service::example;
use crate::support::kafka::Kafka;

fn tell(options: &[&str]) -> String {
    let output = Command::new("timeout")
        .arg("300")
        .arg(example())
        .args(options)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{told}{said}", output.status);
    told
}

fn check(told: &str) {
    let of = |name: &str| {
        let line = told.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("no {name} in:\n{told}"))
    };
    assert!(
        of("first run").contains("shipped 3, then died: signal: 6"),
        "{told}"
    );
    // What of the three was marked before the death is a matter of milliseconds, but the third
    // was not.
    assert!(!of("restart").contains("in_doubt=0"), "{told}");
    let rewound = "new=0 redelivery=9 duplicate=0 in_doubt=0";
    assert!(of("after a rewind").ends_with(rewound), "{told}");
    for order in ["order-1", "order-2", "order-3", "order-4", "order-5"] {
        assert_eq!(of(order).split_whitespace().last(), Some("1"), "{told}");
    }
    let end = "9 records sent, 5 orders shipped, each once";
    assert_eq!(told.lines().last(), Some(end), "{told}");
}

#[test]
fn the_story_ends_well_on_the_embedded_broker() {
    check(&tell(&[]));
}

#[test]
fn the_story_ends_well_on_a_real_broker() {
    let Some(kafka) = Kafka::shared() else { return };
    check(&tell(&["--brokers", kafka.bootstrap()]));
}
