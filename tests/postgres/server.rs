//! `scripts/postgres`, on which every test here relies.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::postgres::{Postgres, connect};

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
