//! Directories that are not opened, and stay as they are.

use std::time::{Duration, Instant};

use super::*;

/// Damages a good store and expects a refusal that says `what` and changes nothing.
fn refused_after(damage: impl Fn(&Paths), what: &str) {
    for durability in [Durability::Power, Durability::Process] {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("seen");
        fill(&path, durability, (2, 10, 5), false);
        damage(&Kept::paths(&path));
        let before = snapshot(&path);
        for _ in 0..2 {
            let text = refusal(&path, durability).to_string();
            assert!(text.contains(what), "{text}");
            assert!(
                text.contains("Put a copy") || text.contains("open it with"),
                "{text}"
            );
            assert_eq!(snapshot(&path), before, "{text}");
        }
    }
}

#[test]
fn a_lost_stamp() {
    refused_after(
        |paths| fs::remove_file(&paths.stamp).unwrap(),
        "its stamp is gone",
    );
}

// C086
#[test]
fn a_stamp_of_a_newer_format() {
    let newer = "{\n  \"format\": 4,\n  \"shards\": []\n}\nchecksum sha256:00\n";
    refused_after(
        |paths| fs::write(&paths.stamp, newer).unwrap(),
        "has format 4, and this version reads formats up to 3",
    );
}

#[test]
fn a_stamp_with_a_changed_byte_or_cut_short() {
    let edit = |edit: fn(&mut Vec<u8>)| {
        move |paths: &Paths| {
            let mut bytes = fs::read(&paths.stamp).unwrap();
            edit(&mut bytes);
            fs::write(&paths.stamp, bytes).unwrap();
        }
    };
    let at_group = |bytes: &mut Vec<u8>| {
        let at = bytes.windows(8).position(|part| part == b"ship-svc");
        bytes[at.unwrap()] ^= 1;
    };
    refused_after(edit(at_group), "checksum does not match");
    refused_after(edit(|bytes| bytes.truncate(bytes.len() / 2)), "no checksum");
    refused_after(edit(Vec::clear), "no checksum");
    refused_after(edit(|bytes| bytes.fill(0)), "no checksum");
    refused_after(edit(|bytes| bytes.fill(0xff)), "no text");
}

#[test]
fn a_lost_log() {
    refused_after(|paths| remove(&paths.log), "the log is gone");
    refused_after(|paths| remove(&paths.data), "the log is gone");
}

#[test]
fn a_high_water_file_that_is_lost_cut_or_zeroed() {
    refused_after(
        |paths| fs::remove_file(&paths.high_water).unwrap(),
        "the high-water file is gone",
    );
    let cut_to = |len: u64| {
        move |paths: &Paths| {
            let file = fs::OpenOptions::new().write(true).open(&paths.high_water);
            file.unwrap().set_len(len).unwrap();
        }
    };
    refused_after(cut_to(0), "ends before partition number 0");
    refused_after(cut_to(159), "ends before partition number 1");
    let zero = |paths: &Paths| fs::write(&paths.high_water, [0; 160]).unwrap();
    refused_after(zero, "both slots of partition number 0 are broken");
}

#[test]
fn an_older_copy_of_the_stamp() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("seen");
    fill(&path, Durability::Power, (1, 2, 5), true);
    let paths = Kept::paths(&path);
    let older = fs::read(&paths.stamp).unwrap();
    let store = open(&path, Durability::Power).unwrap();
    let lease = store.lease(&orders(1)).unwrap();
    store.commit(&[unit(&lease, 0, 3)]).unwrap();
    drop(store);
    fs::write(&paths.stamp, older).unwrap();
    let text = refusal(&path, Durability::Power).to_string();
    assert!(
        text.contains("partition number 1, which has no name"),
        "{text}"
    );
}

#[test]
fn a_directory_that_is_somebody_elses_is_not_touched() {
    let parent = tempfile::tempdir().unwrap();
    fs::write(parent.path().join("letters.txt"), "dear").unwrap();
    fs::create_dir(Kept::paths(parent.path()).log).unwrap();
    let before = snapshot(parent.path());
    let text = refusal(parent.path(), Durability::Power).to_string();
    assert!(text.contains("letters.txt"), "{text}");
    assert!(text.contains("a directory of its own"), "{text}");
    assert_eq!(snapshot(parent.path()), before);
}

// C084
#[test]
fn a_path_that_is_a_file_or_below_one_or_empty() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    fs::write(&file, "content").unwrap();
    for path in [file.clone(), file.join("below"), PathBuf::new()] {
        let error = refusal(&path, Durability::Power);
        assert!(matches!(error, StoreError::Unusable { .. }), "{error}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"content");
}

// C084
#[test]
fn missing_parents_are_made() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a/b/c");
    let acknowledged = fill(&path, Durability::Power, (1, 2, 3), false);
    let store = open(&path, Durability::Power).unwrap();
    acknowledged.missing_in(&store).unwrap();
}

#[test]
fn what_an_unfinished_creation_leaves_is_no_obstacle() {
    let parent = tempfile::tempdir().unwrap();
    let paths = Kept::paths(parent.path());
    fs::write(&paths.lock, "4711\n").unwrap();
    fs::write(paths.stamp.with_extension("new"), "{\"form").unwrap();
    open(parent.path(), Durability::Power).unwrap();
}

#[test]
fn the_secret_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = tempfile::tempdir().unwrap();
    fill(parent.path(), Durability::Power, (1, 1, 1), false);
    let stamp = fs::metadata(Kept::paths(parent.path()).stamp).unwrap();
    assert_eq!(stamp.permissions().mode() & 0o077, 0);
}

#[test]
fn a_second_opening_in_one_process_is_refused_with_path_and_holder() {
    let parent = tempfile::tempdir().unwrap();
    let mut acknowledged = Acknowledged::default();
    let store = open(parent.path(), Durability::Power).unwrap();
    let lease = store.lease(&orders(0)).unwrap();
    let before = snapshot(parent.path());
    let start = Instant::now();
    let error = refusal(parent.path(), Durability::Power);
    assert!(start.elapsed() < Duration::from_secs(60));
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    let holder = format!("by process {}", std::process::id());
    assert!(error.to_string().contains(&holder), "{error}");
    assert_eq!(snapshot(parent.path()), before);
    // The holder is not disturbed.
    acknowledged.commit(&store, vec![unit(&lease, 0, 3)]);
    drop(store);
    let store = open(parent.path(), Durability::Power).unwrap();
    acknowledged.missing_in(&store).unwrap();
}
