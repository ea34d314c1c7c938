//! `kafka-lab-slow` as a user runs it: real processes, a real state file.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;

use crate::lab::Lab;
use crate::support::{Broker, Client};

const DELAY: Duration = Duration::from_millis(200);

#[test]
fn on_and_off_have_taken_effect_when_they_return() {
    let (lab, broker) = (Lab::new(), Broker::answering());
    let serve = lab.serve(&broker);
    for _ in 0..3 {
        let printed = lab.ok(&["on", "--delay-ms", "200"]);
        assert_eq!(
            printed,
            "on: a delay of 200 ms for requests of more than 4096 bytes\n"
        );
        assert!(serve.round_trip(4_097) >= DELAY);
        lab.ok(&["on", "--delay-ms", "3600000"]);
        serve.assert_passes(4_096);
        assert_eq!(lab.ok(&["off"]), "off: no delay\n");
        serve.assert_passes(5_000);
    }
}

#[test]
fn the_first_state_is_off_with_the_labs_settings() {
    let (lab, broker) = (Lab::new(), Broker::answering());
    let status = lab.ok(&["status"]);
    assert!(status.starts_with("off\ndelay: 600 ms for requests of more than 4096 bytes\n"));
    assert!(status.contains("proxy: not running\n"), "{status}");
    assert!(status.contains("(not there yet)"), "{status}");
    let serve = lab.serve(&broker);
    assert!(serve.line.contains(", off "), "{}", serve.line);
    serve.assert_passes(5_000);
}

#[test]
fn status_tells_the_proxy_that_runs_and_its_settings() {
    let (lab, broker) = (Lab::new(), Broker::answering());
    let serve = lab.serve(&broker);
    lab.ok(&["on", "--threshold-bytes", "100", "--delay-ms", "50"]);
    assert_eq!(
        lab.ok(&["status"]),
        format!(
            "on\ndelay: 50 ms for requests of more than 100 bytes\n\
             proxy: running, process {}, {} -> {}\nstate file: {}\n",
            serve.child.id(),
            serve.addr,
            broker.addr,
            lab.state().display()
        )
    );
}

#[test]
fn without_a_serve_the_state_is_stored_for_the_next_one_and_that_is_said() {
    let (lab, broker) = (Lab::new(), Broker::answering());
    let output = lab.run(&["on", "--delay-ms", "200"]);
    assert!(output.status.success());
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("no proxy is running"), "{note}");
    assert!(note.contains(&lab.state().display().to_string()), "{note}");
    let serve = lab.serve(&broker);
    assert!(serve.line.contains(", on "), "{}", serve.line);
    assert!(serve.round_trip(5_000) >= DELAY);
}

#[test]
fn on_and_its_settings_survive_a_restart_of_serve() {
    let (lab, broker) = (Lab::new(), Broker::answering());
    for signal in ["TERM", "INT", "KILL"] {
        let mut serve = lab.serve_with(&broker, &["--delay-ms", "200"]);
        lab.ok(&["on"]);
        let status = serve.signal(signal);
        assert_eq!(status.success(), signal != "KILL", "{signal}: {status}");
        let printed = lab.ok(&["status"]);
        let words = "on (stored; no proxy runs, nothing is delayed)\ndelay: 200 ms";
        assert!(printed.starts_with(words), "{printed}");
        assert!(printed.contains("proxy: not running"), "{printed}");
        assert!(lab.serve(&broker).round_trip(5_000) >= DELAY);
        lab.ok(&["off"]);
    }
}

#[test]
fn a_second_serve_on_the_same_state_is_refused_and_the_first_goes_on() {
    let (lab, broker) = (Lab::new(), Broker::answering());
    let serve = lab.serve(&broker);
    let upstream = broker.addr.to_string();
    let second = ["serve", "--listen", "127.0.0.1:0", "--upstream", &upstream];
    let complaint = lab.fails(1, &second);
    let process = format!("process {}", serve.child.id());
    assert!(complaint.contains(&process), "{complaint}");
    assert!(complaint.contains("--state"), "{complaint}");
    lab.ok(&["on", "--delay-ms", "200"]);
    assert!(serve.round_trip(5_000) >= DELAY);
}

#[test]
fn commands_at_the_same_time_each_take_effect() {
    let (lab, broker) = (Lab::new(), Broker::answering());
    let _serve = lab.serve(&broker);
    let commands: Vec<_> = (0..8)
        .map(|i| {
            let on_or_off = if i % 2 == 0 { "on" } else { "off" };
            lab.command(&[on_or_off])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for command in commands {
        let output = command.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert!(!lab.ok(&["status"]).contains("not in force"));
}

#[test]
fn a_damaged_state_file_is_refused_with_its_path_and_never_overwritten() {
    let (lab, broker) = (Lab::new(), Broker::answering());
    let upstream = broker.addr.to_string();
    for damage in [
        "",
        "{",
        "{\"on\":true}",
        "{\"on\":true,\"threshold_bytes\":4096,\"delay_ms\":0}",
        "{\"on\":true,\"threshold_bytes\":-1,\"delay_ms\":600}",
    ] {
        fs::write(lab.state(), damage).unwrap();
        let serve = ["serve", "--listen", "127.0.0.1:0", "--upstream", &upstream];
        for arguments in [&["on"][..], &["off"], &["status"], &serve] {
            let complaint = lab.fails(1, arguments);
            let path = lab.state().display().to_string();
            assert!(complaint.contains(&path), "{arguments:?}: {complaint}");
            assert!(
                complaint.contains("remove it"),
                "{arguments:?}: {complaint}"
            );
        }
        assert_eq!(fs::read_to_string(lab.state()).unwrap(), damage);
    }
}

#[test]
fn a_state_file_that_is_damaged_or_removed_under_a_serve_leaves_it_as_it_was() {
    let (lab, broker) = (Lab::new(), Broker::answering());
    let serve = lab.serve(&broker);
    lab.ok(&["on", "--delay-ms", "200"]);
    fs::write(lab.state(), "nonsense").unwrap();
    lab.wait_for_complaint("damaged");
    assert!(serve.round_trip(5_000) >= DELAY);
    fs::remove_file(lab.state()).unwrap();
    lab.wait_for_complaint("is gone");
    assert!(serve.round_trip(5_000) >= DELAY);
    lab.ok(&["off"]);
    serve.assert_passes(5_000);
}

#[test]
fn serve_says_what_it_could_not_forward() {
    let (lab, broker) = (Lab::new(), Broker::answering());
    let serve = lab.serve(&broker);
    let mut client = Client::at(serve.addr);
    client.send(&(-7_i32).to_be_bytes());
    client.assert_closed();
    lab.wait_for_complaint("-7 bytes");
}

#[test]
fn a_flag_goes_before_the_environment() {
    let lab = Lab::new();
    let other = lab.directory.path().join("other.json");
    let other = other.to_str().unwrap();
    lab.ok(&["on", "--state", other]);
    assert!(lab.ok(&["status", "--state", other]).starts_with("on "));
    assert!(lab.ok(&["status"]).starts_with("off\n"));
}

#[test]
fn a_wrong_command_line_exits_with_2_and_names_what_is_wrong() {
    let lab = Lab::new();
    for (arguments, words) in [
        (&[][..], "no command"),
        (&["maybe"], "maybe"),
        (&["on", "off"], "off"),
        (&["serve"], "--listen ADDR and --upstream ADDR"),
        (&["serve", "--upstream", "127.0.0.1:1"], "--listen"),
        (&["serve", "--listen", "127.0.0.1:1"], "--upstream"),
        (&["serve", "--listen", "nowhere"], "nowhere"),
        (&["on", "--listen", "127.0.0.1:1"], "--listen"),
        (&["status", "--delay-ms", "5"], "--delay-ms"),
        (&["on", "--delay-ms", "0"], "--delay-ms 0"),
        (&["on", "--delay-ms", "3600001"], "3600000"),
        (&["on", "--delay-ms", "soon"], "--delay-ms soon"),
        (&["on", "--threshold-bytes", "-1"], "--threshold-bytes -1"),
        (&["on", "--threshold-bytes", "1e3"], "0 to 4294967295"),
        (&["on", "--state", ""], "--state"),
        (&["on", "--fast"], "--fast"),
    ] {
        let complaint = lab.fails(2, arguments);
        assert!(complaint.contains(words), "{arguments:?}: {complaint}");
    }
    assert!(!lab.state().exists());
}

#[test]
fn serve_fails_with_the_reason_when_it_cannot_listen() {
    let (lab, broker) = (Lab::new(), Broker::answering());
    let upstream = broker.addr.to_string();
    let complaint = lab.fails(
        1,
        &["serve", "--listen", "0.0.0.0:0", "--upstream", &upstream],
    );
    assert!(complaint.contains("loopback"), "{complaint}");
    let other = Broker::answering().addr.to_string();
    let complaint = lab.fails(1, &["serve", "--listen", &other, "--upstream", &upstream]);
    assert!(complaint.contains(&other), "{complaint}");
    assert!(lab.ok(&["status"]).contains("proxy: not running"));
}

#[test]
fn a_state_file_in_a_directory_that_is_not_there_is_refused_by_name() {
    let lab = Lab::new();
    let missing = lab.directory.path().join("missing").join("state.json");
    let complaint = lab.fails(1, &["on", "--state", missing.to_str().unwrap()]);
    assert!(complaint.contains("missing"), "{complaint}");
}

#[test]
fn a_full_standard_output_is_a_failure_and_a_closed_one_is_not() {
    let lab = Lab::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let status = lab.command(&["--help"]).stdout(full).status().unwrap();
    assert_eq!(status.code(), Some(1));
    let (reader, writer) = UnixStream::pair().unwrap();
    drop(reader);
    let closed = Stdio::from(OwnedFd::from(writer));
    let status = lab.command(&["--help"]).stdout(closed).status().unwrap();
    assert!(status.success());
}

#[test]
fn help_and_version_are_printed() {
    let lab = Lab::new();
    assert!(
        lab.ok(&["--help"])
            .contains("kafka-lab-slow serve --listen")
    );
    assert!(lab.ok(&["-V"]).starts_with("kafka-lab-slow "));
}
