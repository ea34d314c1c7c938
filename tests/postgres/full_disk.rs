//! A disk that takes no more: nothing is half there, and nothing is lost when there is room again.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use idempotent_consumer::RetryPolicy;

use crate::database::Database;
use crate::member::{Member, broker, builder, numbered, produce};
use crate::postgres::Postgres;
use crate::support::skip::cannot_run;

/// Starts what follows with a small file system at `$0`, which nobody else sees and which ends with
/// the server.
const MOUNT: &str = "mount -t tmpfs -o size=32m none \"$0\" && exec \"$@\"";

/// Whether this process may do so.
fn may_mount() -> bool {
    let mount = "mount -t tmpfs none /mnt";
    let mounted = Command::new("unshare")
        .args(["--mount", "sh", "-c", mount])
        .output();
    mounted.is_ok_and(|output| output.status.success())
}

/// The directory, as the server sees it.
fn seen_by(server: &Postgres, dir: &Path) -> PathBuf {
    let root = format!("/proc/{}/root", server.pid().unwrap());
    Path::new(&root).join(dir.strip_prefix("/").unwrap())
}

/// A file that takes all room but its last 256 KiB.
fn fill(small: &Path) -> PathBuf {
    let path = small.join("ballast");
    let mut file = fs::File::create(&path).unwrap();
    let block = vec![0; 64 << 10];
    while file.write_all(&block).is_ok() {}
    let length = file.metadata().unwrap().len();
    file.set_len(length - (256 << 10)).unwrap();
    path
}

// C085
#[test]
fn work_goes_on_by_itself_when_a_full_disk_has_room_again_and_nothing_is_lost_or_repeated() {
    const KEYS: usize = 6_000;
    if !may_mount() {
        cannot_run("it mounts a small file system, as root.");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let unshare = ["unshare", "--mount", "--propagation", "private"];
    let shell = ["sh", "-c", MOUNT, dir.path().to_str().unwrap()];
    let Some(server) = Postgres::start_in(&[&unshare[..], &shell].concat()) else {
        return;
    };
    let small = seen_by(&server, dir.path());
    // PostgreSQL wants the directory for itself.
    let owner = fs::metadata(server.dir()).unwrap().uid();
    std::os::unix::fs::chown(&small, Some(owner), None).unwrap();
    fs::set_permissions(&small, fs::Permissions::from_mode(0o700)).unwrap();
    let database = Database::in_directory(&server, dir.path());
    let broker = broker(1);
    let keys = numbered(0..KEYS);
    let ballast = fill(&small);
    produce(&broker, 0, &keys);
    let patient =
        RetryPolicy::exponential(1_000, Duration::from_millis(5), Duration::from_millis(50));
    let member = Member::start(
        builder(broker.bootstrap_servers()).retry(patient),
        &database.config,
    );
    member.wait_for("the full disk", || {
        server.log().contains("No space left on device")
    });
    // What is there is there once, and still not all.
    let before = database.effects();
    assert!(before < KEYS, "the disk was not full");
    database.assert_each_once(&keys[..before], &[], true);
    fs::remove_file(ballast).unwrap();
    member.wait_for("all effects", || database.effects() >= KEYS);
    member.stop();
    database.assert_each_once(&keys, &[], true);
}
