//! `scripts/kafka`, on which every test with a real broker relies.

mod support;

use std::path::Path;
use std::process::Command;

use support::kafka::{Kafka, wait_until};

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
