//! Directories that may not be written.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use idempotent_consumer::store::{Durability, Store as _};

use crate::child;
use crate::kept::{DIRECTORIES, FILES};
use crate::model::{open, orders, unit};
use crate::skip::cannot_run;

/// Root may write everywhere; so this takes that away.
const WITHOUT_PRIVILEGE: [&str; 3] = [
    "setpriv",
    "--inh-caps=-dac_override,-dac_read_search",
    "--bounding-set=-dac_override,-dac_read_search",
];

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The wrapper under which permissions count, `None` where there is none.
fn wrapper(directory: &Path) -> Option<&'static [&'static str]> {
    let probe = directory.join("probe");
    fs::create_dir(&probe).unwrap();
    mode(&probe, 0o555);
    if fs::write(probe.join("file"), "").is_err() {
        return Some(&[]);
    }
    let mut touch = Command::new(WITHOUT_PRIVILEGE[0]);
    touch.args(&WITHOUT_PRIVILEGE[1..]).arg("touch");
    let touched = touch.arg(probe.join("other")).output();
    if touched.is_ok_and(|output| !output.status.success() && !probe.join("other").exists()) {
        return Some(&WITHOUT_PRIVILEGE);
    }
    cannot_run("permissions do not bind this user, and setpriv cannot change that");
    None
}

// C084
#[test]
fn a_directory_without_write_permission_is_refused_by_name() {
    let parent = tempfile::tempdir().unwrap();
    let Some(wrapper) = wrapper(parent.path()) else {
        return;
    };
    let [empty, store, inside] = ["empty", "store", "empty/inside"].map(|n| parent.path().join(n));
    fs::create_dir(&empty).unwrap();
    mode(&empty, 0o555);
    let opened = open(&store, Durability::Power).unwrap();
    let lease = opened.lease(&orders(0)).unwrap();
    opened.commit(&[unit(&lease, 0, 100)]).unwrap();
    drop(opened);
    for part in FILES {
        mode(&store.join(part), 0o444);
    }
    for part in DIRECTORIES {
        mode(&store.join(part), 0o555);
    }
    for path in [&empty, &inside, &store] {
        let said = child::start(wrapper, "open", path).rest();
        let text = said[0]
            .strip_prefix("refused ")
            .unwrap_or_else(|| panic!("{said:?}"));
        println!("{text}");
        assert!(text.contains(&path.display().to_string()), "{text}");
        assert!(
            text.contains("denied") && text.contains("may write"),
            "{text}"
        );
    }
    // So that the directory can be removed.
    for part in DIRECTORIES.iter().rev() {
        mode(&store.join(part), 0o755);
    }
    for part in FILES {
        mode(&store.join(part), 0o644);
    }
    open(&store, Durability::Power).unwrap();
}
