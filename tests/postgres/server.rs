//! `scripts/postgres`, on which every test here relies.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::postgres::{Postgres, UNAVAILABLE, connect};
use crate::skip::cannot_run;
use crate::support::kafka::repository;

#[tokio::test]
async fn what_was_committed_is_there_after_a_kill_and_what_was_not_is_gone() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let database = server.database().await;
    let client = connect(&database).await;
    let kept = "CREATE TABLE kept (number INT); INSERT INTO kept VALUES (7)";
    client.batch_execute(kept).await.unwrap();
    let open = "BEGIN; INSERT INTO kept VALUES (8)";
    client.batch_execute(open).await.unwrap();
    let before = server.pid();
    server.kill();
    assert_eq!(server.pid(), None);
    assert!(client.simple_query("SELECT 1").await.is_err());
    server.resume();
    assert_ne!(server.pid(), before);
    let client = connect(&database).await;
    let rows = client.query("SELECT number FROM kept", &[]).await.unwrap();
    let numbers: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(numbers, [7]);
    // A kill is no excuse for less durability than a user's server has.
    let fsync = client.query_one("SHOW fsync", &[]).await.unwrap();
    assert_eq!(fsync.get::<_, &str>(0), "on");
}

#[test]
fn a_server_and_its_data_are_gone_once_the_process_it_was_started_for_has_ended() {
    let mut parent = Command::new("sleep").arg("300").spawn().unwrap();
    let server = Postgres::start_under(parent.id());
    parent.kill().unwrap();
    parent.wait().unwrap();
    let Some(server) = server else { return };
    let deadline = Instant::now() + Duration::from_secs(30);
    while server.dir().exists() {
        assert!(
            Instant::now() < deadline,
            "{:?} is still there",
            server.dir()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!is_running(server.dir()));
}

/// Whether any process has the directory in its command line.
fn is_running(dir: &Path) -> bool {
    let dir = dir.to_str().unwrap().as_bytes();
    std::fs::read_dir("/proc").unwrap().any(|entry| {
        let command = std::fs::read(entry.unwrap().path().join("cmdline")).unwrap_or_default();
        command.windows(dir.len()).any(|part| part == dir)
    })
}

/// Runs the script without starting anything; gives its exit status and what it said on either
/// stream.
fn call(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(repository().join("scripts/postgres"))
        .args(args)
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
    for flag in ["-h", "--help", "help"] {
        let (code, out, err) = call(&[flag]);
        assert_eq!((code, &*err), (Some(0), ""), "{flag}");
        assert!(out.contains("Exit status"), "{flag}: {out}");
    }
}

#[test]
fn a_wrong_call_is_status_2_and_one_line_that_names_what_is_wrong() {
    for (args, words) in [
        (&["foo"][..], "foo: unknown command"),
        (&["up", "--bogus"], "--bogus: unknown option"),
        (&["up", "--dir"], "--dir needs a value"),
        (&["down", "--dir", ""], "--dir needs a value"),
        (&["up", "--parent", "self"], "--parent self"),
        (&["up", "--parent", "0"], "--parent 0"),
        (&["up", "--config", "x"], "KEY=VALUE"),
    ] {
        let (code, out, err) = call(args);
        assert_eq!((code, &*out), (Some(2), ""), "{args:?}: {err}");
        assert!(err.contains(words), "{args:?}: {err}");
        assert_eq!(err.lines().count(), 1, "{args:?}: {err}");
    }
}

#[test]
fn a_directory_with_anything_else_in_it_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    std::fs::write(dir.path().join("letter"), "dear").unwrap();
    for (command, words) in [
        ("up", "is neither empty nor a server's directory"),
        ("down", "is not a server's directory"),
    ] {
        let (code, _, err) = call(&[command, "--dir", path]);
        if code == Some(UNAVAILABLE) {
            cannot_run(&format!("it needs a real PostgreSQL. {err}"));
            return;
        }
        assert_eq!(code, Some(1), "{command}: {err}");
        assert!(err.contains(words), "{command}: {err}");
    }
    let letter = std::fs::read_to_string(dir.path().join("letter"));
    assert_eq!(letter.unwrap(), "dear");
}
